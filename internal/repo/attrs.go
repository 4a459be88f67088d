package repo

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
)

// defaultACL is the extended attribute with which a folder decides the access
// to what is made in it.
const defaultACL = "system.posix_acl_default"

// xattrs returns the extended attributes of an open file that go over to its
// successor. Those that speak of the file's bytes do not.
func xattrs(fd int) (map[string][]byte, error) {
	size, err := calls.Flistxattr(fd, nil)
	if errors.Is(err, unix.ENOTSUP) || err == nil && size == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list := make([]byte, size+1024)
	if size, err = calls.Flistxattr(fd, list); err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for attr := range strings.SplitSeq(strings.TrimSuffix(string(list[:size]), "\x00"), "\x00") {
		ofBytes := slices.Contains([]string{"security.capability", "security.ima", "security.evm"}, attr)
		if attr == "" || ofBytes || strings.HasPrefix(attr, "trusted.overlay.") {
			continue
		}
		value, err := xattr(fd, attr)
		if err != nil {
			return nil, err
		}
		if value != nil {
			out[attr] = value
		}
	}
	return out, nil
}

// xattr returns one attribute; nil if the file has not got it.
func xattr(fd int, attr string) ([]byte, error) {
	for range tries {
		size, err := calls.Fgetxattr(fd, attr, nil)
		if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		value := make([]byte, size)
		if size > 0 {
			size, err = calls.Fgetxattr(fd, attr, value)
		}
		if errors.Is(err, unix.ERANGE) {
			continue // it has grown
		}
		return value[:max(size, 0)], err
	}
	return nil, unix.ERANGE
}

// dress gives an open file the owner, the extended attributes and then the
// permission bits named. What cannot be carried over is a refusal: a file must
// not become readable or unreadable for somebody by a patch.
func dress(fd int, rel string, uid, gid int, attrs map[string][]byte, perm uint32) error {
	refuse := func(what string, err error) error {
		if errors.Is(err, unix.EIO) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			return pathError(rel, err)
		}
		return fault.Errorf(fault.Refused, "state.permission", "%s of %s cannot be kept: %v", what, quote(rel), err).With("path", rel)
	}
	var st unix.Stat_t
	if err := calls.Fstat(fd, &st); err != nil {
		return err
	}
	if int(st.Uid) != uid || int(st.Gid) != gid {
		if err := calls.Fchown(fd, uid, gid); err != nil {
			return refuse("the owner", err)
		}
	}
	for attr, value := range attrs {
		have, err := xattr(fd, attr)
		if err != nil || have == nil || !bytes.Equal(have, value) {
			if err := calls.Fsetxattr(fd, attr, value); err != nil {
				return refuse("the attribute "+attr, err)
			}
		}
	}
	if err := calls.Fchmod(fd, perm); err != nil {
		return refuse("the permission bits", err)
	}
	return nil
}

package repo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/patch"
)

// origin returns what an open folder has and no clone, checkout, archive or
// copy of it can have: its inode and when that was made. Where the file system
// does not keep the time, the root's inode stands for it.
func (w *Workspace) origin(dir int) (string, error) {
	var x unix.Statx_t
	err := calls.Statx(dir, unix.STATX_INO|unix.STATX_BTIME, &x)
	if err == nil && x.Mask&unix.STATX_BTIME != 0 && x.Btime != (unix.StatxTimestamp{}) {
		return fmt.Sprintf("%d@%d.%09d", x.Ino, x.Btime.Sec, x.Btime.Nsec), nil
	}
	if err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return "", err
	}
	var own, root unix.Stat_t
	err = errors.Join(calls.Fstat(dir, &own), calls.Fstat(w.at.fd(), &root))
	return fmt.Sprintf("%d in %d", own.Ino, root.Ino), err
}

// A distrust is why nothing of a transaction's folder is done. It is errDamaged
// to whoever asks.
type distrust struct{ why string }

func (d distrust) Error() string        { return d.why }
func (d distrust) Is(target error) bool { return target == errDamaged }

// foreign is the distrust of a folder that was not written where it lies.
func (t *tx) foreign() error {
	return distrust{fmt.Sprintf("%s/%s was not written here by this program: it came with a clone, a branch, an archive or a copy, or an older version left it; "+
		"nothing of it was done; compare the files with what you expect and move the folder away", txDir, t.name())}
}

// believed says whether a marker was written here.
func (t *tx) believed(marker string) error {
	b, _, err := t.at(marker).read(context.Background(), 64<<20)
	if err != nil {
		return err
	}
	var by struct {
		Origin string `json:"origin"`
	}
	if err := json.Unmarshal(b, &by); err != nil || by.Origin != t.origin {
		return t.foreign()
	}
	return nil
}

// sound says whether a journal was written here, and names nothing that no
// plan could name.
func (t *tx) sound(j journal) error {
	if j.Origin != t.origin {
		return t.foreign()
	}
	damaged := func(what string) error {
		return distrust{fmt.Sprintf("the journal %s/%s/journal is damaged: %s; nothing of it was done", txDir, t.name(), what)}
	}
	if j.Tx != t.id || j.Attempt != t.attempt {
		return damaged("it is that of another transaction")
	}
	paths := make([]string, 0, len(j.Ops)+len(j.Made)+len(j.Emptied))
	for _, op := range j.Ops {
		if !op.sound() {
			return damaged("what it says of " + quote(string(op.Path)) + " does not agree")
		}
		paths = append(paths, string(op.Path))
	}
	for _, m := range j.Made {
		paths = append(paths, string(m))
	}
	for _, f := range j.Emptied {
		paths = append(paths, string(f.Path))
	}
	for _, p := range paths {
		if _, why := t.w.changeable(p); why != "" {
			return damaged(quote(p) + " " + why)
		}
	}
	if err := consistent(j.Ops); err != nil {
		return damaged(err.Error())
	}
	if m := j.Ref; m != nil && (!strings.HasPrefix(m.Ref, "refs/") || !isHex(m.New) || m.New == "" || !isHex(m.Old)) {
		return damaged("it names no branch")
	}
	return nil
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// sound says whether the kind of an operation agrees with its states.
func (op operation) sound() bool {
	there := func(s patch.State) bool {
		switch s.Mode {
		case "100644", "100755":
			return s.Kind == patch.File
		}
		return s.Mode == "120000" && s.Kind == patch.Symlink
	}
	nothing := patch.State{Kind: patch.Absent}
	switch op.Kind {
	case create:
		return op.Before == nothing && there(op.After)
	case replace:
		return there(op.Before) && there(op.After)
	case remove:
		return there(op.Before) && op.After == nothing
	}
	return false
}

package repo

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
)

// A stamp says which file lies at a name: where two are equal and old, so are
// the bytes.
type stamp struct {
	there        bool
	dev, ino     uint64
	mode         uint32
	size         int64
	mtime, ctime unix.Timespec
}

// settle is how old a file's last change must be before what was read of it is
// kept: a change within one tick of the file system's clock shows in no stamp.
const settle = 100 * time.Millisecond

// stampOf looks at a name, through a link.
func stampOf(name string) (stamp, error) { return stampBy(calls.Stat, name) }

// stampOfLink looks at a name, and at a link itself.
func stampOfLink(name string) (stamp, error) { return stampBy(calls.Lstat, name) }

func stampBy(stat func(string, *unix.Stat_t) error, name string) (stamp, error) {
	var st unix.Stat_t
	switch err := stat(name, &st); {
	case gone(err):
		return stamp{}, nil
	case err != nil:
		return stamp{}, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	return stamp{true, uint64(st.Dev), st.Ino, st.Mode, st.Size, st.Mtim, st.Ctim}, nil
}

// settled says that whatever changes the file from now on changes its stamp
// too. now was read before the stamp was taken.
func (s stamp) settled(now time.Time) bool {
	return !s.there || now.Sub(time.Unix(s.ctime.Unix())) > settle && now.Sub(time.Unix(s.mtime.Unix())) > settle
}

// stamps looks at several names, and says whether all are settled.
func stamps(names []string) (all []stamp, settled bool, err error) {
	now, settled := time.Now(), true
	for _, name := range names {
		s, err := stampOf(name)
		if errors.Is(err, unix.EACCES) {
			s, err = stamp{}, nil // git cannot read it either
		}
		if err != nil {
			return nil, false, err
		}
		all, settled = append(all, s), settled && s.settled(now)
	}
	return all, settled, nil
}

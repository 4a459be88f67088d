package repo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
)

// txDir holds a folder for each transaction that is not finished.
const txDir = stateDir + "/tx"

var goodTx = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// A tx is one attempt of a transaction: its folder and its journal.
type tx struct {
	w       *Workspace
	id      string
	attempt int
	dir     int // the open folder
	origin  string
	j       journal
	next    *private // while the index is locked: what it is to be
	unnamed error    // why the lock has not become the index
}

func (t *tx) name() string { return txName(t.id, t.attempt) }

func txName(id string, attempt int) string { return id + "." + strconv.Itoa(attempt) }

func parseTx(s string) (id string, attempt int, ok bool) {
	id, n, ok := strings.Cut(s, ".")
	attempt, err := strconv.Atoi(n)
	return id, attempt, ok && err == nil && attempt >= 0 && goodTx.MatchString(id) && txName(id, attempt) == s
}

func checkTx(id string, attempt int) error {
	if !goodTx.MatchString(id) || attempt < 0 {
		return fault.Errorf(fault.Invalid, "bad_transaction", "%q, attempt %d, cannot name a transaction", id, attempt)
	}
	return nil
}

// step says that a step is about to be done.
func (t *tx) step(p Phase, what, rel string) {
	t.w.o.Step(Step{Tx: t.id, Attempt: t.attempt, Phase: p, Name: what, Path: rel})
}

// begin makes the folder of an attempt, which must not be there.
func (w *Workspace) begin(id string, attempt int) (*tx, error) {
	p, err := w.at.parent(txDir + "/" + txName(id, attempt))
	if err != nil {
		return nil, pathError(txDir, err)
	}
	if err = errors.Join(calls.Mkdirat(p.dir, p.name, 0o700), p.close()); err != nil {
		return nil, pathError(txDir, err)
	}
	return w.reopen(id, attempt)
}

// reopen opens the folder of an attempt. Where there is none the error is
// unix.ENOENT.
func (w *Workspace) reopen(id string, attempt int) (*tx, error) {
	fd, err := w.at.open(txDir+"/"+txName(id, attempt), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	t := &tx{w: w, id: id, attempt: attempt, dir: fd}
	if t.origin, err = w.origin(fd); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// close ends the use of the folder. What that answers says nothing about what
// was written: each file was closed and synced before.
func (t *tx) close() { _ = calls.Close(t.dir) }

func (t *tx) at(name string) place { return place{t.dir, name} }

// has says whether a file of the transaction's folder is there.
func (t *tx) has(file string) (bool, error) {
	var st unix.Stat_t
	err := calls.Fstatat(t.dir, file, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	return err == nil, err
}

// marker returns what the folder says about the outcome. A committed
// transaction stays so, also when a path of it needs attention. Of a folder
// that was not written here nothing is believed: errDamaged.
func (t *tx) marker() (Marker, error) {
	for file, m := range map[string]Marker{"commit": Committed, "aborted": Aborted} {
		has, err := t.has(file)
		if err == nil && has {
			err = t.believed(file)
		}
		if errors.Is(err, errDamaged) {
			return Attention, err
		}
		if err != nil || has {
			return m, err
		}
	}
	if has, err := t.has("attention"); err != nil || has {
		return Attention, err
	}
	return None, nil
}

// load reads the journal. Where there is none the error is unix.ENOENT; one
// that is damaged, or was not written here, is errDamaged.
func (t *tx) load(ctx context.Context) error {
	f, _, err := t.at("journal").openFile()
	if err != nil {
		return err
	}
	b, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close(), ctx.Err()); err != nil {
		return err
	}
	j, err := decodeJournal(b)
	if err == nil {
		err = t.sound(j)
	}
	if err == nil {
		t.j = j
	}
	return err
}

// put writes a file of the folder: temporary file, fsync, rename, fsync of the
// folder. When it returns the file is durable; when it fails before the
// rename the file is not there, and after it that is unknown.
func (t *tx) put(p Phase, file string, b []byte) error {
	t.step(p, "write", file)
	fd, err := calls.Openat(t.dir, file+".new", unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return pathError(file, err)
	}
	f := calls.NewFile(fd, file)
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return pathError(file, err)
	}
	t.step(p, "name", file)
	if err := calls.Renameat(t.dir, file+".new", t.dir, file, 0); err != nil {
		return pathError(file, err)
	}
	t.step(p, "name_sync", file)
	if err := calls.Fsync(t.dir, t.name()); err != nil {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	return nil
}

// errUnknown means: a name was given and could not be made durable.
var errUnknown = errors.New("written, but not known to be durable")

// putJSON writes a file of the folder as JSON.
func (t *tx) putJSON(p Phase, file string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return t.put(p, file, append(b, '\n'))
}

// clear gives up the index's lock and removes the folder: first all but the markers, then these, so that a
// crash in between leaves what says that there is nothing left to do.
func (t *tx) clear() error {
	if err := t.dropLocks(); err != nil {
		return err
	}
	fd, err := openat(t.dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return err
	}
	all, err := namesIn(fd)
	if err != nil {
		return err
	}
	markers := map[string]bool{"commit": true, "aborted": true, resolved: true}
	for _, last := range []bool{false, true} {
		for _, n := range all {
			if markers[n] == last && n != "journal" {
				if err := t.remove(n); err != nil {
					return err
				}
			}
		}
		if !last {
			if err := t.remove("journal"); err != nil {
				return err
			}
		}
		if err := calls.Fsync(t.dir, t.name()); err != nil {
			return err
		}
	}
	p, err := t.w.at.parent(txDir + "/" + t.name())
	if err != nil {
		return err
	}
	delete(t.w.durable, t.name())
	delete(t.w.indexed, t.name())
	t.step(Finish, "rmdir", "")
	return errors.Join(calls.Unlinkat(p.dir, p.name, unix.AT_REMOVEDIR), calls.Fsync(p.dir, txDir), p.close())
}

// remove removes a file, or an empty folder, of the transaction's folder.
func (t *tx) remove(file string) error {
	t.step(Finish, "remove", file)
	err := calls.Unlinkat(t.dir, file, 0)
	switch {
	case !errors.Is(err, unix.EISDIR):
	case strings.HasPrefix(file, "acl-") || strings.HasPrefix(file, "folder-"):
		err = t.removeFolder(file)
	default: // somebody else's, in a slot: only if it is empty
		err = calls.Unlinkat(t.dir, file, unix.AT_REMOVEDIR)
	}
	if errors.Is(err, unix.ENOENT) {
		err = nil
	}
	return err
}

// removeFolder removes a folder that a staging or a rollback was making.
func (t *tx) removeFolder(dir string) error {
	fd, err := openat(t.dir, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return err
	}
	p := place{fd, dir}
	again, err := openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return errors.Join(err, p.close())
	}
	left, err := namesIn(again)
	for _, n := range left {
		err = errors.Join(err, calls.Unlinkat(fd, n, 0))
	}
	return errors.Join(err, p.close(), calls.Unlinkat(t.dir, dir, unix.AT_REMOVEDIR))
}

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"roundtable/internal/repo"
	"roundtable/internal/sandbox"
)

// abilities are what the machine can isolate.
type abilities struct {
	Sandbox  sandbox.Level     `json:"sandbox_level"`
	Backends []sandbox.Ability `json:"sandbox_backends"`
	Landlock int               `json:"landlock_abi"`
	Kernel   string            `json:"kernel"`
}

// least of what must be free where the service writes.
const (
	leastBytes  = 256 << 20
	leastInodes = 1000
)

// machine looks at what does not depend on a data folder.
func (x *examination) machine(ctx context.Context) error {
	v, err := repo.GitVersion(ctx, repo.Options{UserEnv: os.Environ()})
	x.add(examined("git", "git "+v, err, "install Git 2.32 or newer; plain folders work without it"))
	if err := x.sandbox(ctx); err != nil {
		return err
	}
	x.add(examined("clock", "it is "+time.Now().UTC().Format(time.RFC3339), clock(time.Now(), time.Time{}), "set the machine's clock"))
	return nil
}

// sandbox tries what isolates tests, in a folder of its own.
func (x *examination) sandbox(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "roundtable-doctor-")
	if err != nil {
		x.add(examined("sandbox", "", err, "make "+os.TempDir()+" writable"))
		return nil
	}
	defer os.RemoveAll(dir)
	r, err := sandbox.Probe(ctx, dir)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	x.Abilities = abilities{r.Level, r.Abilities, r.LandlockABI, r.Kernel}
	var why []string
	for _, a := range r.Abilities {
		if !a.Works {
			why = append(why, string(a.Backend)+": "+a.Detail)
		}
	}
	if err == nil && !r.Level.AtLeast(sandbox.Namespace) && !x.flags.AllowUnsandboxed {
		err = wrongf("tests can be isolated at level %s only, and none is run below namespace: %s", r.Level, strings.Join(why, "; "))
	}
	detail := "tests are isolated at level " + string(r.Level)
	if len(why) > 0 {
		detail += "; not by " + strings.Join(why, "; ")
	}
	x.add(examined("sandbox", detail, err, "install bubblewrap or allow user namespaces, or serve with --allow-unsandboxed"))
	return nil
}

// clock judges the time of day by what is certain: it is after this version was
// written, and after the newest event.
func clock(now, newest time.Time) error {
	written := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	switch {
	case now.Before(written):
		return wrongf("it is %s, which is before this version was written", now.UTC().Format(time.RFC3339))
	case now.Add(time.Second).Before(newest):
		return wrongf("it is %s, and the newest event is of %s", now.UTC().Format(time.RFC3339), newest.UTC().Format(time.RFC3339))
	}
	return nil
}

// space says how much is free in the file system of dir.
func space(dir string) (string, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	free := int64(s.Bavail) * s.Bsize
	switch {
	case free < leastBytes:
		return "", wrongf("%d MiB are free under %s; below %d the next write may fail", free>>20, dir, leastBytes>>20)
	case s.Files > 0 && s.Ffree < leastInodes:
		return "", wrongf("%d more files can be made under %s", s.Ffree, dir)
	}
	return fmt.Sprintf("%d MiB free", free>>20), nil
}

// private says whether what lies in the data folder is its owner's alone.
func private(data string) error {
	open := func(path string) error {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if st.Mode&0o077 != 0 {
			return wrongf("%s can be read or changed by others (mode %04o)", path, st.Mode&0o7777)
		}
		if int(st.Uid) != os.Geteuid() {
			return wrongf("%s belongs to user %d and not to %d, who runs this", path, st.Uid, os.Geteuid())
		}
		return nil
	}
	if err := open(data); err != nil {
		return err
	}
	for _, pattern := range []string{"*.db", "*.db-wal", "*.db-shm", "server.lock", "blobs", "runs"} {
		names, err := filepath.Glob(filepath.Join(data, pattern))
		if err != nil {
			return err
		}
		for _, n := range names {
			if err := open(n); err != nil {
				return err
			}
		}
	}
	return nil
}

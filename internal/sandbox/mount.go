package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A mounted is a mount that is attached nowhere yet.
type mounted struct {
	at  string
	fd  int
	dir bool
}

// mount makes the world of the order and makes it this process's root. It
// needs namespaces of its own, and the rights of their owner.
//
// All mounts are made before any is attached: what is shown may lie where the
// new root is put together.
func (o order) mount() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	var all []mounted
	for _, make := range []func() ([]mounted, error){o.systems, o.devices, o.clones, o.overlays} {
		made, err := make()
		if err != nil {
			return err
		}
		all = append(all, made...)
	}
	root, err := o.newRoot()
	if err != nil {
		return err
	}
	if err := o.attach(root, all); err != nil {
		return err
	}
	if err := enter(root); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if !o.Network {
		return loopbackUp()
	}
	return nil
}

// fresh makes a new file system of a kind.
func fresh(kind, at string, attrs int, options map[string]string) (mounted, error) {
	fail := func(what string, err error) (mounted, error) {
		return mounted{}, fmt.Errorf("%s for %s: %s: %w", kind, at, what, err)
	}
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fail("fsopen", err)
	}
	defer unix.Close(fs)
	for key, value := range options {
		if value == "" {
			err = unix.FsconfigSetFlag(fs, key)
		} else {
			err = unix.FsconfigSetString(fs, key, value)
		}
		if err != nil {
			return fail("option "+key, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return fail("create", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrs)
	if err != nil {
		return fail("fsmount", err)
	}
	return mounted{at, fd, true}, nil
}

const plain = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

// systems makes the file systems that are the sandbox's own.
func (o order) systems() ([]mounted, error) {
	temp := map[string]string{"mode": "1777"}
	if o.Limits.Temp > 0 {
		temp["size"] = strconv.FormatUint(o.Limits.Temp, 10)
	}
	small := map[string]string{"mode": "0755", "size": "1m"}
	var all []mounted
	for _, m := range []struct {
		kind, at string
		attrs    int
		options  map[string]string
	}{
		{"proc", "/proc", plain | unix.MOUNT_ATTR_NOEXEC, nil},
		{"tmpfs", "/dev", unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC, small},
		{"tmpfs", "/dev/shm", plain, temp},
		{"devpts", "/dev/pts", unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC, map[string]string{"newinstance": "", "ptmxmode": "0666", "mode": "0620"}},
		{"tmpfs", "/tmp", plain, temp},
		{"tmpfs", "/var/tmp", plain, temp},
		{"tmpfs", "/run", plain, temp},
	} {
		made, err := fresh(m.kind, m.at, m.attrs, m.options)
		if err != nil {
			return nil, err
		}
		all = append(all, made)
	}
	return all, nil
}

// devices shows the host's harmless devices.
func (o order) devices() ([]mounted, error) {
	var all []mounted
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		m, err := clone("/dev/"+name, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC})
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// clones shows the order's files of the host.
func (o order) clones() ([]mounted, error) {
	var all []mounted
	for _, b := range o.Binds {
		if b.Link != "" {
			continue
		}
		attr := unix.MountAttr{Attr_set: plain}
		if !b.Writable {
			attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
		}
		m, err := clone(b.Path, attr)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// clone shows a file or directory of the host, with all that is mounted below.
func clone(path string, attr unix.MountAttr) (mounted, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return mounted{}, fmt.Errorf("show %s: %w", path, err)
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return mounted{}, fmt.Errorf("show %s: set its attributes: %w", path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return mounted{}, fmt.Errorf("show %s: %w", path, err)
	}
	return mounted{path, fd, st.Mode&unix.S_IFMT == unix.S_IFDIR}, nil
}

// overlays makes the order's overlays.
func (o order) overlays() ([]mounted, error) {
	var all []mounted
	for _, v := range o.Overlay {
		upper, work := filepath.Join(v.Scratch, "upper"), filepath.Join(v.Scratch, "work")
		for _, dir := range []string{upper, work} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return nil, fmt.Errorf("overlay for %s: %w", v.At, err)
			}
		}
		m, err := fresh("overlay", v.At, plain, map[string]string{
			"lowerdir": v.Lower, "upperdir": upper, "workdir": work, "userxattr": "",
		})
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// newRoot mounts an empty root somewhere and returns where.
func (o order) newRoot() (string, error) {
	for _, dir := range []string{"/tmp", "/mnt", "/run", "/var", "/usr"} {
		if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
			continue
		}
		m, err := fresh("tmpfs", dir, plain, map[string]string{"mode": "0755", "size": "1m"})
		if err != nil {
			return "", err
		}
		return dir, moveTo(m, dir)
	}
	return "", fmt.Errorf("no directory to mount a root on")
}

func moveTo(m mounted, target string) error {
	defer unix.Close(m.fd)
	if err := unix.MoveMount(m.fd, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s: %w", m.at, err)
	}
	return nil
}

// attach puts the mounts, parents first, and the links into the new root.
func (o order) attach(root string, all []mounted) error {
	for _, m := range all {
		target := root + m.at
		if err := makeTarget(target, m.dir); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
		if err := moveTo(m, target); err != nil {
			return err
		}
	}
	links := map[string]string{
		"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1",
		"/dev/stderr": "/proc/self/fd/2", "/dev/ptmx": "pts/ptmx",
	}
	for _, b := range o.Binds {
		if b.Link != "" {
			links[b.Path] = b.Link
		}
	}
	for at, to := range links {
		if err := os.Symlink(to, root+at); err != nil {
			return err
		}
	}
	return nil
}

// makeTarget makes what something is to be mounted on, where it is not there.
func makeTarget(target string, dir bool) error {
	if dir {
		return os.MkdirAll(target, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		if _, there := os.Lstat(target); there == nil {
			return nil // not ours to open, but there
		}
		return err
	}
	return f.Close()
}

// enter makes root the root, read-only, and forgets the old one.
func enter(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	// The old root ends up on top of the new one, and goes.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the old root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &attr); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	return nil
}

// loopbackUp switches lo on: a new network namespace has it off.
func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer unix.Close(s)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("switch the loopback on: %w", err)
	}
	return nil
}

// overlayable refuses paths that overlayfs would take apart.
func overlayable(v Overlay) error {
	for _, p := range []string{v.Lower, v.Scratch} {
		if strings.ContainsAny(p, `:,\`) {
			return fmt.Errorf("sandbox: an overlay of %q is not possible: it contains one of : , \\", p)
		}
	}
	return nil
}

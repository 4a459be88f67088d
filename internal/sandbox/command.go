package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// The system's files that every command may read. Of /etc only what programs
// need to work: keys, password hashes and other programs' settings stay out.
var (
	systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store"}
	etcEntries = []string{
		"alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version", "fonts",
		"group", "host.conf", "hosts", "inputrc", "java*", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
		"locale.alias", "localtime", "magic", "maven", "mime.types", "networks", "nsswitch.conf", "os-release",
		"passwd", "perl", "pki", "protocols", "python*", "redhat-release", "rpc", "services", "ssl/certs",
		"ssl/openssl.cnf", "terminfo", "timezone",
	}
	bwrapPaths = []string{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"}
)

// insideSelf is where a bwrap sandbox shows this program.
const insideSelf = "/run/roundtable-sandbox"

// Self returns the path by which commands run by b can run this program.
func Self(b Backend) (string, error) {
	switch b {
	case Bubblewrap:
		return insideSelf, nil
	case UserNS:
		return "", errors.New("sandbox: userns does not show this program")
	}
	return os.Executable()
}

// order returns what the supervisor is to do.
func (s Spec) order(b Backend) (order, error) {
	binds, err := s.binds()
	if err != nil {
		return order{}, err
	}
	limits := s.Limits
	if limits.Processes > 0 && b.Level() != Namespace && os.Getuid() != 0 {
		// Without a user namespace the kernel counts all of the user's.
		n, err := tasksOf(os.Getuid())
		if err != nil {
			return order{}, err
		}
		limits.Processes += n
	}
	return order{
		Path: s.Path, Argv: s.Argv, Dir: s.Dir, Backend: b, Binds: binds, Overlay: s.Overlays,
		Network: s.Network, Limits: limits, CPU: int64(limits.CPU),
	}, nil
}

// binds lists what the command may see, parents before children.
func (s Spec) binds() ([]bind, error) {
	var list []bind
	system := slices.Clone(systemDirs)
	for _, pattern := range etcEntries {
		found, err := filepath.Glob("/etc/" + pattern)
		if err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
		system = append(system, found...)
	}
	if s.Network {
		system = append(system, "/etc/resolv.conf")
	}
	for _, p := range system {
		b, err := systemBind(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
		list = append(list, b)
	}
	settings, err := kernelSettings()
	if err != nil {
		return nil, err
	}
	for _, p := range append(settings, s.ReadOnly...) {
		list = append(list, bind{Path: p})
	}
	for _, p := range s.ReadWrite {
		list = append(list, bind{Path: p, Writable: true})
	}
	// A writable one after a readable one of the same path, so that it wins.
	slices.SortStableFunc(list, func(a, b bind) int { return cmp.Compare(a.Path, b.Path) })
	return list, nil
}

// kernelSettings lists what of /proc the kernel lets its owner write: to root
// they would be open even without a capability, and even in a user namespace.
func kernelSettings() ([]string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	var list []string
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil || e.Type()&fs.ModeSymlink != 0 {
			continue // a process, or a way to one
		}
		fi, err := e.Info()
		if err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
		if fi.IsDir() || fi.Mode()&0o222 != 0 {
			list = append(list, "/proc/"+e.Name())
		}
	}
	return list, nil
}

// systemBind keeps /bin and the like the links that they are on most systems.
func systemBind(path string) (bind, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return bind{}, err
	}
	if fi.Mode()&fs.ModeSymlink == 0 || filepath.Dir(path) != "/" {
		_, err = os.Stat(path) // a link in /etc is followed and may lead nowhere
		return bind{Path: path}, err
	}
	to, err := os.Readlink(path)
	return bind{Path: path, Link: to}, err
}

// command returns the command that starts the supervisor.
func command(b Backend, o order) (*exec.Cmd, error) {
	cmd := exec.Command("/proc/self/exe", superviseArg)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	switch b {
	case Bubblewrap:
		bwrap, err := findBwrap()
		if err != nil {
			return nil, err
		}
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		cmd = exec.Command(bwrap, bwrapArgs(o, self)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	case UserNS:
		uid, gid := os.Getuid(), os.Getgid()
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
		cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
		if !o.Network {
			cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWNET
		}
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// In the new user namespace only, and only for the supervisor: to mount, to
		// switch the loopback on, to give the rest up for good, and for the working
		// directory of an overlay, which nobody may enter.
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER}
	}
	return cmd, nil
}

// findBwrap looks where only the system's owner can put it, and not on PATH.
func findBwrap() (string, error) {
	for _, p := range bwrapPaths {
		if fi, err := os.Stat(p); err == nil && fi.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", errors.New("bubblewrap is not installed: no bwrap in /usr/bin, /usr/local/bin or /bin")
}

// bwrapArgs has bwrap run this program, at self, as pid 1 of a new world.
//
// It does not ask bwrap to die with this process: a bwrap that is killed while
// it makes that world leaves a half-made pid 1 behind that waits for it for
// ever. Let it finish, and the supervisor finds its control pipe at its end.
func bwrapArgs(o order, self string) []string {
	args := []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--hostname", "sandbox", "--as-pid-1", "--cap-drop", "ALL",
		"--info-fd", strconv.Itoa(infoFD), "--proc", "/proc", "--dev", "/dev",
	}
	if !o.Network {
		args = append(args, "--unshare-net")
	}
	for _, dir := range []string{"/tmp", "/var/tmp", "/run"} {
		if o.Limits.Temp > 0 {
			args = append(args, "--size", strconv.FormatUint(o.Limits.Temp, 10))
		}
		args = append(args, "--perms", "1777", "--tmpfs", dir)
	}
	for _, b := range o.Binds {
		switch {
		case b.Link != "":
			args = append(args, "--symlink", b.Link, b.Path)
		case b.Writable:
			args = append(args, "--bind", b.Path, b.Path)
		default:
			args = append(args, "--ro-bind", b.Path, b.Path)
		}
	}
	return append(args, "--ro-bind", self, insideSelf, "--remount-ro", "/", "--chdir", "/",
		"--", insideSelf, superviseArg)
}

// tasksOf counts the processes and threads of a user.
func tasksOf(uid int) (uint64, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, fmt.Errorf("sandbox: count processes: %w", err)
	}
	n := uint64(0)
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Stat("/proc/"+e.Name(), &st) != nil || int(st.Uid) != uid {
			continue // ended, or another's
		}
		tasks, err := os.ReadDir("/proc/" + e.Name() + "/task")
		if err == nil {
			n += uint64(len(tasks))
		}
	}
	return n, nil
}

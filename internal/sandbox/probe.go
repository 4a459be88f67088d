package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// probeTime bounds the probe of one backend.
const probeTime = 10 * time.Second

// A Report says what this machine can isolate, as found by trying it.
type Report struct {
	Level       Level     `json:"level"` // the strongest that works; none if not even processes can be ended
	Abilities   []Ability `json:"abilities"`
	Bubblewrap  string    `json:"bubblewrap"`   // its version; empty if it is not installed
	LandlockABI int       `json:"landlock_abi"` // 0 if the kernel has none
	Kernel      string    `json:"kernel"`
}

// An Ability is whether one backend works here.
type Ability struct {
	Backend Backend `json:"backend"`
	Level   Level   `json:"level"`
	Works   bool    `json:"works"`
	Detail  string  `json:"detail"` // what was seen, or why it does not work
}

// Choose returns the strongest backend that works and is not above most. With
// overlay, one that can make overlays is preferred to another of its level;
// see Backend.Overlays.
func (r Report) Choose(most Level, overlay bool) (Backend, bool) {
	var found Backend
	for _, a := range r.Abilities {
		switch {
		case !a.Works || !most.AtLeast(a.Level):
		case found == "", overlay && a.Level == found.Level() && a.Backend.Overlays() && !found.Overlays():
			found = a.Backend
		}
	}
	return found, found != ""
}

// Overlays reports whether b can do Spec.Overlays.
func (b Backend) Overlays() bool { return b == UserNS }

// Probe tries every backend on a small command that looks around. It makes a
// directory below dir and removes it.
func Probe(ctx context.Context, dir string) (Report, error) {
	r := Report{Level: None, LandlockABI: landlockABI()}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return r, fmt.Errorf("sandbox: uname: %w", err)
	}
	r.Kernel = unix.ByteSliceToString(uts.Release[:])
	if bwrap, err := findBwrap(); err == nil {
		out, err := exec.CommandContext(ctx, bwrap, "--version").Output()
		r.Bubblewrap = strings.TrimSpace(string(out))
		if err != nil {
			r.Bubblewrap = "broken: " + err.Error()
		}
	}
	for _, b := range Backends() {
		a := Ability{Backend: b, Level: b.Level()}
		detail, err := probe(ctx, b, dir)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		a.Works, a.Detail = err == nil, detail
		if err != nil {
			a.Detail = err.Error()
		} else if !r.Level.AtLeast(a.Level) {
			r.Level = a.Level
		}
		r.Abilities = append(r.Abilities, a)
	}
	return r, nil
}

// A sight is what the probe's command saw.
type sight struct {
	PID        int      `json:"pid"`
	Readable   bool     `json:"readable"`  // a file that it must not see
	Wrote      string   `json:"wrote"`     // error of writing in its own directory
	Connected  string   `json:"connected"` // error of a TCP connection to the prober
	Interfaces []string `json:"interfaces"`
	Daemon     string   `json:"daemon"` // error of starting one
}

// probe runs a command by b that looks around and leaves a daemon behind, and
// says what is not as b promises.
func probe(ctx context.Context, b Backend, dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	dir, err = os.MkdirTemp(dir, "sandbox-probe-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	inside, secret := filepath.Join(dir, "inside"), filepath.Join(dir, "secret")
	if err := errors.Join(os.Mkdir(inside, 0o700), os.WriteFile(secret, nil, 0o600)); err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	c, err := Start(b, Spec{
		Path: "/proc/self/exe", Argv: []string{"sandbox", probeArg, secret, l.Addr().String()},
		Dir: inside, ReadWrite: []string{inside}, Stdout: w,
	})
	w.Close()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		c.Destroy()
		r.SetReadDeadline(time.Unix(1, 0))
	})
	defer stop()
	// The end of the output means that the daemon, which holds it, has ended.
	out, readErr := io.ReadAll(r)
	st, err := c.Wait()
	if err := errors.Join(ctx.Err(), err, readErr); err != nil {
		return "", err
	}
	return judgeProbe(b, out, st)
}

// judgeProbe compares what was seen with what b promises.
func judgeProbe(b Backend, out []byte, st Status) (string, error) {
	var saw sight
	if err := json.Unmarshal(out, &saw); err != nil {
		return "", fmt.Errorf("the probe's command answered %.100q (%+v): %w", out, st, err)
	}
	seen := fmt.Sprintf("pid %d, interfaces %v, tcp to the host: %s", saw.PID, saw.Interfaces, saw.Connected)
	promised := b.Level()
	switch {
	case st.Level != promised:
		return "", fmt.Errorf("reached level %s only (%s)", st.Level, seen)
	case st.Code != 0 || saw.Wrote != "" || saw.Daemon != "":
		return "", fmt.Errorf("the command could not do its work: status %d, write %q, fork %q", st.Code, saw.Wrote, saw.Daemon)
	case !st.TreeEnded:
		return "", errors.New("the process tree did not end")
	case promised.AtLeast(Landlock) && saw.Readable:
		return "", errors.New("a file outside was readable")
	case promised.AtLeast(Landlock) && saw.Connected == "":
		return "", errors.New("the host's network was reachable")
	case promised == Namespace && (saw.PID > 10 || len(saw.Interfaces) != 1):
		return "", fmt.Errorf("the namespaces are not its own (%s)", seen)
	}
	return seen, nil
}

// observe is the probe's command.
func observe(w io.Writer, args []string) int {
	if len(args) != 2 {
		time.Sleep(time.Hour) // the daemon: only a kill ends it in time
		return 0
	}
	saw := sight{PID: os.Getpid()}
	_, err := os.ReadFile(args[0])
	saw.Readable = err == nil
	saw.Wrote = text(os.WriteFile("file", []byte("x"), 0o600))
	conn, err := net.DialTimeout("tcp", args[1], probeTime/2)
	if saw.Connected = text(err); err == nil {
		conn.Close()
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		saw.Interfaces = append(saw.Interfaces, err.Error(), "?")
	}
	for _, i := range interfaces {
		saw.Interfaces = append(saw.Interfaces, i.Name)
	}
	daemon := exec.Command("/proc/self/exe", probeArg)
	daemon.Stdout = os.Stdout
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	saw.Daemon = text(daemon.Start())
	if err := json.NewEncoder(w).Encode(saw); err != nil {
		return 1
	}
	return 0
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

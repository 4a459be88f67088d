package testy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// Main is the program: it serves stdin and stdout of the process as the
// arguments say and returns its exit code.
func Main(args []string) int {
	o, err := ParseArgs(args)
	switch {
	case errors.Is(err, ErrHelp):
		fmt.Fprint(os.Stdout, Usage)
		return 0
	case errors.Is(err, ErrVersion):
		fmt.Fprintln(os.Stdout, "testy", version())
		return 0
	case errors.Is(err, ErrFaultList):
		if err := PrintFaults(os.Stdout); err != nil {
			return 1
		}
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "testy: %v\n%s", err, Usage)
		return 2
	}
	o.Version = version()
	signal.Ignore(syscall.SIGPIPE) // a client that is gone is an error of a write
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if o.HasFault("ignore-term") {
		signal.Ignore(syscall.SIGTERM)
	}
	if o.HasFault("orphan") {
		if err := orphan(); err != nil {
			fmt.Fprintln(os.Stderr, "testy: no orphan:", err)
			return 1
		}
	}
	agent, err := New(o, Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Exit: exit})
	if err == nil {
		err = agent.Serve(ctx)
	}
	if o.HasFault("ignore-eof") || o.HasFault("ignore-term") {
		<-ctx.Done()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testy:", err)
		return 1
	}
	return 0
}

// version is what the build says of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "0.0.0"
	}
	return info.Main.Version
}

func exit(code int, sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			fmt.Fprintln(os.Stderr, "testy:", err)
		}
	}
	os.Exit(code)
}

// orphan starts a child that leaves the process group and keeps stderr open.
func orphan() error {
	cmd := exec.Command("sleep", "600")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

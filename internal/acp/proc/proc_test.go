package proc_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"roundtable/internal/acp/proc"
)

func sh(t *testing.T, script string) *proc.Process {
	t.Helper()
	p, err := proc.Start(proc.Command{Argv: []string{"sh", "-c", script}, Stderr: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(context.Background(), 0) })
	return p
}

// firstLine waits until the script says that it is where it should be.
func firstLine(t *testing.T, p *proc.Process) string {
	t.Helper()
	line, err := bufio.NewReader(p.Stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestLadder(t *testing.T) {
	for _, x := range []struct {
		script string
		step   proc.Step
		exit   string
	}{
		{"echo on; cat >/dev/null; exit 3", proc.StepStdin, "exit code 3"},
		{"echo on; exec sleep 600", proc.StepTerm, "signal SIGTERM"},
		{"trap '' TERM; echo on; while :; do sleep 600; done", proc.StepKill, "signal SIGKILL"},
	} {
		before := openFiles(t)
		p := sh(t, x.script)
		firstLine(t, p)
		r := p.Stop(context.Background(), 50*time.Millisecond)
		if x.step == proc.StepStdin && r.Step == proc.StepTerm {
			continue // a slow machine
		}
		if r.Step != x.step || r.Exit.String() != x.exit {
			t.Errorf("%s: %+v", x.script, r)
		}
		if now := openFiles(t); now != before {
			t.Errorf("%s: %d files are open, %d were", x.script, now, before)
		}
		if again := p.Stop(context.Background(), time.Hour); again != r {
			t.Errorf("a second stop says %+v", again)
		}
	}
}

func TestAlreadyEnded(t *testing.T) {
	p := sh(t, "echo last words >&2; exit 7")
	<-p.Done()
	if r := p.Stop(context.Background(), time.Minute); r.Step != proc.StepNone || r.Exit.Code != 7 {
		t.Errorf("%+v", r)
	}
	if p.Tail() != "last words\n" {
		t.Errorf("the tail is %q", p.Tail())
	}
	p = sh(t, "kill -KILL $$")
	<-p.Done()
	if p.Exit().Signal != "SIGKILL" {
		t.Errorf("%+v", p.Exit())
	}
}

// TestOrphans: children that left the group and whose parent is gone end too,
// and hold nothing up although they have standard error.
func TestOrphans(t *testing.T) {
	for _, script := range []string{
		"setsid sleep 600 & echo $!; exit 0",
		"sh -c 'setsid sleep 600 & echo $!'; cat >/dev/null",
		"sleep 600 & echo $!; cat >/dev/null",
		"env -i setsid sleep 600 & echo $!; cat >/dev/null", // without the mark, but below it in the tree
	} {
		p := sh(t, script)
		pid, err := strconv.Atoi(firstLine(t, p))
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		r := p.Stop(context.Background(), 5*time.Second)
		if !gone(pid) {
			t.Errorf("%s: %d survives, %+v", script, pid, r)
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if time.Since(begin) > 4*time.Second {
			t.Errorf("%s: the stop took %s", script, time.Since(begin))
		}
	}
}

func TestTail(t *testing.T) {
	p := sh(t, "i=0; while [ $i -lt 4000 ]; do echo 'a line of some fifty bytes on standard error .....' >&2; i=$((i+1)); done; echo end >&2")
	if _, err := io.ReadAll(p.Stdout); err != nil {
		t.Fatal(err)
	}
	p.Stop(context.Background(), time.Second)
	if tail := p.Tail(); len(tail) != 64<<10 || !strings.HasSuffix(tail, "\nend\n") {
		t.Errorf("%d bytes, ending in %q", len(tail), tail[len(tail)-10:])
	}
}

func TestNoCommand(t *testing.T) {
	before := openFiles(t)
	for _, argv := range [][]string{nil, {"/nonexistent/agent"}} {
		if _, err := proc.Start(proc.Command{Argv: argv}); err == nil {
			t.Errorf("%v starts", argv)
		}
	}
	if now := openFiles(t); now != before {
		t.Errorf("%d files are open, %d were", now, before)
	}
}

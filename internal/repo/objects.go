package repo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"roundtable/internal/fault"
)

// A reader is a git process that answers what objects hold, one question at a
// time. It is started by the first question and lives as long as the workspace.
type reader struct {
	mu   sync.Mutex
	mode string // "--batch", or "--batch-check" that gives no bytes
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs *tail
}

// A header is what git says of an object before its bytes.
type header struct {
	kind string // "blob", "tree", "commit", "tag"; empty if it is not there
	size int64
}

// ask asks for an object, whose bytes go to dst. What goes wrong on the way
// ends the process: the next question starts another.
func (w *Workspace) ask(ctx context.Context, r *reader, oid string, dst io.Writer) (h header, err error) {
	if oid == "" || strings.ContainsAny(oid, " \n") {
		return h, fmt.Errorf("%q is no object id", oid)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return h, err
	}
	if r.cmd == nil {
		if err := w.startReader(r); err != nil {
			return h, w.usable(ctx, fmt.Errorf("git cat-file: %w", err))
		}
	}
	process := r.cmd.Process
	spared := context.AfterFunc(ctx, func() { _ = process.Kill() })
	h, ended, err := r.answer(oid, dst)
	if !spared() || ended != nil {
		_ = r.stop() // it was killed, or says nothing more that can be understood
		err = w.usable(ctx, fmt.Errorf("git cat-file: %w: %s", errors.Join(ctx.Err(), ended, err), strings.TrimSpace(string(r.errs.b))))
	}
	return h, err
}

// answer puts one question. ended says why no other can follow.
func (r *reader) answer(oid string, dst io.Writer) (h header, ended, err error) {
	if _, err := io.WriteString(r.in, oid+"\n"); err != nil {
		return h, err, nil
	}
	line, err := r.out.ReadString('\n')
	if err != nil {
		return h, err, nil
	}
	fields := strings.Fields(line)
	if len(fields) == 2 && fields[1] == "missing" {
		return h, nil, nil
	}
	if len(fields) != 3 {
		return h, fmt.Errorf("it answers %q", line), nil
	}
	h.kind = fields[1]
	if h.size, err = strconv.ParseInt(fields[2], 10, 64); err != nil {
		return h, err, nil
	}
	if r.mode == "--batch-check" {
		return h, nil, nil
	}
	bytes := io.LimitReader(r.out, h.size)
	_, err = io.Copy(dst, bytes)
	if _, ended = io.Copy(io.Discard, bytes); ended == nil {
		_, ended = r.out.Discard(1) // a line break
	}
	return h, ended, err
}

func (w *Workspace) startReader(r *reader) (err error) {
	c := w.call(call{args: []string{"cat-file", r.mode}})
	cmd := exec.Command(w.o.Git, c.args...)
	cmd.Dir, cmd.Env = c.dir, w.o.environment(c)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.errs = &tail{}
	cmd.Stderr = r.errs
	if r.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.cmd, r.out = cmd, bufio.NewReaderSize(out, 64<<10)
	return nil
}

// stop ends the process, if one runs.
func (r *reader) stop() error {
	if r.cmd == nil {
		return nil
	}
	err := errors.Join(r.in.Close(), r.cmd.Process.Kill())
	_ = r.cmd.Wait() // killed, as was asked for
	r.cmd = nil
	return err
}

func (r *reader) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stop()
}

// kindOf returns the kind of an object; empty if there is none.
func (w *Workspace) kindOf(ctx context.Context, oid string) (string, error) {
	h, err := w.ask(ctx, &w.headers, oid, nil)
	return h.kind, err
}

// object writes the bytes of an object of one of some kinds to dst.
func (w *Workspace) object(ctx context.Context, oid string, dst io.Writer, kinds ...string) error {
	h, err := w.ask(ctx, &w.objects, oid, dst)
	switch {
	case err != nil:
		return err
	case h.kind == "":
		return fault.Errorf(fault.Unavailable, "state.object_missing", "the repository lacks the object %s", oid)
	case !slices.Contains(kinds, h.kind):
		return fmt.Errorf("object %s is a %s", oid, h.kind)
	}
	return nil
}

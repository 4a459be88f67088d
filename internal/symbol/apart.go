package symbol

import (
	"context"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

// A Source is a file to be read.
type Source struct {
	Name string // its end says the language
	Data []byte
}

// workerArg is the argument that makes the program a worker.
const workerArg = "symbols-worker"

// answers says that this program is one that Main can make a worker.
var answers atomic.Bool

// Main turns the program into a worker, if that is what it was started as. A
// program that calls Apart calls it first of all.
func Main(args []string) (status int, handled bool) {
	answers.Store(true)
	if len(args) != 2 || args[1] != workerArg {
		return 0, false
	}
	if err := work(os.Stdin, os.Stdout); err != nil {
		return 1, true
	}
	return 0, true
}

// workerMemory bounds the memory of a worker, in bytes.
const workerMemory = 2 << 30

type request struct {
	Source Source
	Limits Limits
}

// work answers requests until there are no more.
func work(in io.Reader, out io.Writer) error {
	err := errors.Join(
		syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: workerMemory, Max: workerMemory}),
		syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}))
	if err != nil {
		return err
	}
	d, e := gob.NewDecoder(in), gob.NewEncoder(out)
	for {
		var r request
		if err := d.Decode(&r); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		f, err := Read(context.Background(), r.Source.Name, r.Source.Data, r.Limits)
		if err != nil {
			return err
		}
		if err := e.Encode(f); err != nil {
			return err
		}
	}
}

// A Reader reads files as Read does, but lets a process of its own parse what
// is not Go: the parsers are C, and text that nests a hundred thousand deep
// overflows their stack. The process is started when it is needed, and again
// when it has died of a file. Close ends it.
type Reader struct {
	Limits Limits

	cmd *exec.Cmd
	in  io.WriteCloser
	e   *gob.Encoder
	d   *gob.Decoder
}

// Read finds the symbols of a file. Its error is ctx's, or that of starting
// the process.
func (r *Reader) Read(ctx context.Context, s Source) (File, error) {
	if f, done := (File{Language: LanguageOf(s.Name), Status: OK}).early(s.Data, r.Limits.filled()); done || f.Language == "go" {
		return Read(ctx, s.Name, s.Data, r.Limits)
	}
	select {
	case parsing <- struct{}{}:
		defer func() { <-parsing }()
	case <-ctx.Done():
		return File{}, ctx.Err()
	}
	if r.cmd == nil {
		if err := r.start(); err != nil {
			return File{}, err
		}
	}
	// A parser looks at its clock now and then only.
	timed, done := context.WithTimeout(ctx, (slowest+1)*r.Limits.filled().Time+time.Second)
	defer done()
	cmd := r.cmd
	stop := context.AfterFunc(timed, func() { _ = cmd.Process.Kill() })
	var f File
	err := r.e.Encode(request{s, r.Limits})
	if err == nil {
		err = r.d.Decode(&f)
	}
	if stop() && err == nil {
		return f, nil
	}
	_ = r.Close() // it died, or is being killed: that is the error
	f = File{Language: LanguageOf(s.Name)}
	switch {
	case ctx.Err() != nil:
		return File{}, ctx.Err()
	case timed.Err() != nil:
		return f.without(TooLarge, "it is not parsed in %v", r.Limits.filled().Time), nil
	}
	return f.without(TooLarge, "the parser fails on it: it nests too deep, or takes too much memory"), nil
}

func (r *Reader) start() error {
	if !answers.Load() {
		return errors.New("symbol: this program cannot be a worker: it does not call Main")
	}
	cmd := exec.Command("/proc/self/exe", workerArg)
	cmd.Env = []string{"GOTRACEBACK=none"}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.cmd, r.in, r.e, r.d = cmd, in, gob.NewEncoder(in), gob.NewDecoder(out)
	return nil
}

// Close ends the process, if there is one.
func (r *Reader) Close() error {
	if r.cmd == nil {
		return nil
	}
	err := r.in.Close()
	_ = r.cmd.Process.Kill() // it has nothing to finish
	_ = r.cmd.Wait()         // killed
	r.cmd = nil
	return err
}

package symbol

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	sitter "github.com/tree-sitter/go-tree-sitter"
)

// chunk is how much text the parser is handed at once, in bytes. It keeps a
// copy of each until it ends, also of those it asks for again.
const chunk = 4 << 10

// rereads bounds how often a parser may go over the text: hostile text makes
// it look ahead to the end again and again.
const rereads = 16

// parsing bounds how many files Readers parse at once: a tree takes some
// hundred times the memory of its text.
var parsing = make(chan struct{}, 4)

// readTree reads a file by its tree-sitter grammar.
func (f File) readTree(ctx context.Context, ext string, data []byte, limits Limits) (File, error) {
	g := grammars[ext]
	tree, why, err := g.parse(ctx, data, limits)
	if err != nil || tree == nil {
		return f.without(TooLarge, "%s", why), err
	}
	defer tree.Close()
	broken, fault := 0, ""
	if tree.RootNode().HasError() {
		broken = firstFault(tree)
		fault = fmt.Sprintf("line %d does not parse", broken)
	}
	w := walk{nodes: g.nodes, data: data, list: &list{limits: limits}, cursor: tree.Walk(), class: f.Language == "python" || f.Language == "rust"}
	defer w.cursor.Close()
	w.children("", 0, false)
	return f.give(w.list, broken, fault), nil
}

// parse gives the tree of the text. Where there is none, it says why.
//
// The parser is stopped by its cancellation flag: the callback that is to take
// its place keeps what belongs to each parse for ever.
func (g grammar) parse(ctx context.Context, data []byte, limits Limits) (tree *sitter.Tree, why string, err error) {
	p := sitter.NewParser()
	defer p.Close()
	if err := p.SetLanguage(g.language()); err != nil {
		return nil, "", err
	}
	stop := new(uintptr)
	var pin runtime.Pinner
	pin.Pin(stop)
	defer pin.Unpin()
	p.SetCancellationFlag(stop) //lint:ignore SA1019 see above
	timed, done := context.WithCancel(ctx)
	defer done()
	defer context.AfterFunc(timed, func() { atomic.StoreUintptr(stop, 1) })()
	defer whenSpent(limits.Time, done)()
	read, most := 0, rereads*(len(data)+chunk)
	tree = p.ParseWithOptions(func(at int, _ sitter.Point) []byte {
		if at >= len(data) || atomic.LoadUintptr(stop) != 0 {
			return nil
		}
		text := data[at:min(at+chunk, len(data))]
		if read += len(text); read > most {
			atomic.StoreUintptr(stop, 1)
		}
		return text
	}, nil, nil)
	stopped := atomic.LoadUintptr(stop) != 0
	if tree != nil && stopped { // the text may have been cut short for it
		tree.Close()
		tree = nil
	}
	switch {
	case ctx.Err() != nil:
		if tree != nil {
			tree.Close()
		}
		return nil, "", ctx.Err()
	case tree == nil && read > most:
		return nil, "its text makes a parser go over it too often", nil
	case tree == nil:
		return nil, fmt.Sprintf("it is not parsed in %v", limits.Time), nil
	}
	return tree, "", nil
}

// slowest is how much longer than its processor time a parse may take by the
// clock, on a machine that has other things to do.
const slowest = 15

// whenSpent calls f once the program has used up d of processor time, or
// slowest times as much by the clock. cancel ends the waiting.
func whenSpent(d time.Duration, f func()) (cancel func()) {
	began, used := time.Now(), processorTime()
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for left := d; left > 0 && time.Since(began) < slowest*d; left = d - (processorTime() - used) {
			select {
			case <-time.After(max(left, time.Millisecond)):
			case <-ended:
				return
			}
		}
		f()
	})
	return func() {
		close(ended)
		wg.Wait()
	}
}

// processorTime is what the program has used of it so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // the clock decides
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// firstFault is the line of the first fault in a tree that has one.
func firstFault(tree *sitter.Tree) int {
	c := tree.Walk()
	defer c.Close()
	for {
		n := c.Node()
		if n.IsError() || n.IsMissing() || !c.GotoFirstChild() {
			return int(n.StartPosition().Row) + 1
		}
		for !c.Node().HasError() && !c.Node().IsMissing() && c.GotoNextSibling() {
		}
	}
}

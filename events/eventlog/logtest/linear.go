package logtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"roundtable/events/eventlog"
)

// An appendOp is an append of n events to a stream read at version expected,
// or, with n 0, a read of the stream's version.
type appendOp struct {
	stream   int
	expected int64
	n        int
}

type appendResult struct {
	ok      bool  // of an append
	version int64 // of a read
}

// streamModel: the state of a stream is its version; an append succeeds
// exactly if it expected the state.
func streamModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			by := map[int][]porcupine.Operation{}
			for _, op := range history {
				s := op.Input.(appendOp).stream
				by[s] = append(by[s], op)
			}
			var parts [][]porcupine.Operation
			for _, p := range by {
				parts = append(parts, p)
			}
			return parts
		},
		Init: func() any { return int64(0) },
		Step: func(state, input, output any) (bool, any) {
			at, op, res := state.(int64), input.(appendOp), output.(appendResult)
			switch {
			case op.n == 0:
				return res.version == at, at
			case op.expected == at:
				return res.ok, at + int64(op.n)
			}
			return !res.ok, at
		},
	}
}

// testLinearizable: what 16 clients are told of 4 streams has an order in
// which it is true, whatever they did at once. A stale read planted in the
// history must be found, else the check proves nothing.
func testLinearizable(t *testing.T, e *env) {
	history := record(t, e, 16, 60)
	if !porcupine.CheckOperations(streamModel(), history) {
		t.Error("the history is not linearizable")
	}
	newest := map[int]int64{}
	last := int64(0)
	for _, op := range history {
		in, out := op.Input.(appendOp), op.Output.(appendResult)
		if in.n > 0 && out.ok {
			newest[in.stream] = max(newest[in.stream], in.expected+int64(in.n))
		}
		last = max(last, op.Return)
	}
	stale := porcupine.Operation{ClientId: 99, Input: appendOp{stream: 1}, Output: appendResult{version: newest[1] - 1}, Call: last + 1, Return: last + 2}
	if porcupine.CheckOperations(streamModel(), append(history, stale)) {
		t.Error("a stale read went unnoticed")
	}
	e.all(t)
}

func record(t *testing.T, e *env, clients, each int) []porcupine.Operation {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	start := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	eachAtOnce(clients, func(c int) {
		rnd := rand.New(rand.NewPCG(uint64(seed), uint64(c)))
		seen := map[int]int64{}
		for i := range each {
			op := appendOp{stream: rnd.IntN(4), n: rnd.IntN(4)}
			op.expected = seen[op.stream]
			id := fmt.Sprint("s", op.stream)
			call := time.Since(start).Nanoseconds()
			var res appendResult
			if op.n == 0 {
				es, err := e.Stream(context.Background(), stream(id), 0)
				if err != nil {
					t.Error(err)
				}
				res.version = int64(len(es))
				seen[op.stream] = res.version
			} else {
				_, err := e.Append(context.Background(), batch(fmt.Sprintf("%d.%d", c, i), id, op.expected, op.n), nil)
				if err != nil && !errors.Is(err, eventlog.ErrMoved) {
					t.Error(err)
				}
				if res.ok = err == nil; res.ok {
					seen[op.stream] = op.expected + int64(op.n)
				}
			}
			done := porcupine.Operation{ClientId: c, Input: op, Output: res, Call: call, Return: time.Since(start).Nanoseconds()}
			mu.Lock()
			history = append(history, done)
			mu.Unlock()
		}
	})
	return history
}

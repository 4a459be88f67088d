// Package bench measures the log against the limits of its machine: one
// durable transaction per row, the same rows done the plain way, and a bare
// scan.
//
// What always holds: contenders do their work through the settings that the
// program uses (internal/sqlite); they run in short slices, in random order
// inside each round, and a ratio is the median of ratios of one round, since
// a shared disk swings more between rounds than contenders differ. Absolute
// figures are of the machine as it was at that moment.
package bench

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// Settings say how to measure appends.
type Settings struct {
	Dir     string           // an existing folder on the disk to be measured; files are left in it
	Writers []int            // numbers of concurrent writers
	Rounds  int              // for each number of writers
	Slice   time.Duration    // for each contender in each round
	Seed    uint64           // of the order
	Now     func() time.Time // a clock with a monotonic reading

	// Own and Hot are more contenders, on streams of the writers' own and on
	// one stream: whole commands, as the program runs them.
	Own, Hot []Extra
}

// An Extra is a contender made by the caller. Do does one durable command with
// a key in time order; writer is below the number of writers and is in one
// call at a time.
type Extra struct {
	Name string
	Open func(ctx context.Context, path string) (do func(ctx context.Context, writer int, key string) error, done func() error, err error)
}

// opener makes a contender of e.
func (e Extra) opener() opener {
	return func(ctx context.Context, s Settings, path string) (contender, error) {
		do, done, err := e.Open(ctx, path)
		ws := newWriters(s.Now)
		return contender{e.Name, func(ctx context.Context, w int) (int, error) {
			key, _, _, err := ws.get(w).next(s.Now())
			if err != nil {
				return 0, err
			}
			return 1, do(ctx, w, key)
		}, done}, err
	}
}

func openers(es []Extra) (os []opener) {
	for _, e := range es {
		os = append(os, e.opener())
	}
	return os
}

// A contender appends one command durably each time do is called; writer is
// below the number of writers and is in one call at a time.
type contender struct {
	name  string
	do    func(ctx context.Context, writer int) (tries int, err error)
	close func() error
}

// A Result is what one contender came to with a number of writers.
type Result struct {
	Test      string  `json:"test"`
	Contender string  `json:"contender"`
	Writers   int     `json:"writers"`
	PerSecond float64 `json:"per_second"` // median of the rounds
	Ratio     float64 `json:"ratio"`      // to the first contender: median of the rounds' ratios
	P50       float64 `json:"p50_ms"`     // of all rounds
	P99       float64 `json:"p99_ms"`
	Tries     float64 `json:"tries"` // per command, mean
}

// A slice is what a contender did in one round.
type slice struct {
	perSecond float64
	tries     int
	latencies []time.Duration
}

// compare runs the contenders, the first of which is the measure of the
// others, with each number of writers.
func compare(ctx context.Context, s Settings, test string, open func(writers int) ([]contender, error)) (results []Result, err error) {
	rnd := rand.New(rand.NewPCG(s.Seed, 0))
	for _, writers := range s.Writers {
		cs, err := open(writers)
		if err != nil {
			return nil, err
		}
		rounds, err := runRounds(ctx, s, rnd, cs, writers)
		for _, c := range cs {
			if cerr := c.close(); err == nil {
				err = cerr
			}
		}
		if err != nil {
			return nil, err
		}
		for i, c := range cs {
			results = append(results, summarize(test, c.name, writers, rounds, i))
		}
	}
	return results, nil
}

// runRounds returns for each round what each contender did. A first slice of
// each is thrown away: it fills caches and makes files grow.
func runRounds(ctx context.Context, s Settings, rnd *rand.Rand, cs []contender, writers int) ([][]slice, error) {
	rounds := make([][]slice, s.Rounds)
	for round := -1; round < s.Rounds; round++ {
		done := make([]slice, len(cs))
		for _, i := range rnd.Perm(len(cs)) {
			var err error
			if done[i], err = runSlice(ctx, s, cs[i], writers); err != nil {
				return nil, fmt.Errorf("%s, %d writers: %w", cs[i].name, writers, err)
			}
		}
		if round >= 0 {
			rounds[round] = done
		}
	}
	return rounds, nil
}

func runSlice(ctx context.Context, s Settings, c contender, writers int) (total slice, err error) {
	ends, cancel := context.WithTimeout(ctx, s.Slice)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	start := s.Now()
	for w := range writers {
		wg.Go(func() {
			var own slice
			var failed error
			for ends.Err() == nil && failed == nil {
				begin := s.Now()
				var tries int
				tries, failed = c.do(ctx, w)
				own.tries += tries
				own.latencies = append(own.latencies, s.Now().Sub(begin))
			}
			mu.Lock()
			defer mu.Unlock()
			total.latencies = append(total.latencies, own.latencies...)
			total.tries += own.tries
			if err == nil {
				err = failed
			}
		})
	}
	wg.Wait()
	total.perSecond = float64(len(total.latencies)) / s.Now().Sub(start).Seconds()
	if err == nil {
		err = ctx.Err()
	}
	return total, err
}

func summarize(test, name string, writers int, rounds [][]slice, i int) Result {
	r := Result{Test: test, Contender: name, Writers: writers}
	var rates, ratios []float64
	var latencies []time.Duration
	tries := 0
	for _, round := range rounds {
		rates = append(rates, round[i].perSecond)
		ratios = append(ratios, round[i].perSecond/round[0].perSecond)
		latencies = append(latencies, round[i].latencies...)
		tries += round[i].tries
	}
	slices.Sort(latencies)
	r.PerSecond, r.Ratio = median(rates), median(ratios)
	r.P50, r.P99 = quantile(latencies, 0.5), quantile(latencies, 0.99)
	r.Tries = float64(tries) / float64(max(len(latencies), 1))
	return r
}

func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	xs = slices.Sorted(slices.Values(xs))
	return (xs[(len(xs)-1)/2] + xs[len(xs)/2]) / 2
}

// quantile returns the q-th part of sorted durations, in milliseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))].Seconds() * 1000
}

// Print writes results as a table.
func Print(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	test := ""
	for _, r := range results {
		if r.Test != test {
			test = r.Test
			fmt.Fprintf(t, "\t\t\t\t\t\t\n%s\twriters\tcommands/s\tratio\tp50 ms\tp99 ms\ttries\t\n", test)
		}
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", r.Contender, r.Writers, r.PerSecond, r.Ratio, r.P50, r.P99, r.Tries)
	}
	return t.Flush()
}

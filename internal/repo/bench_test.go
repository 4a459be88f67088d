package repo_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// cpu reports the processor time of the process and of those it started,
// beside which a busy machine's wall time says little.
func cpu(b *testing.B, loop func()) {
	used := func() (d time.Duration) {
		for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
			var r syscall.Rusage
			must(b, syscall.Getrusage(who, &r))
			d += time.Duration(r.Utime.Nano() + r.Stime.Nano())
		}
		return d
	}
	was := used()
	for b.Loop() {
		loop()
	}
	b.ReportMetric(float64((used()-was).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// BenchmarkApply is a whole apply and its finish, syncs included: each round
// takes the files to their other version.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{1, 50, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			root := b.TempDir()
			specs := [2]spec{"100644 one\n", "100644 two\n"}
			var plans [2]repo.Plan
			for i := range n {
				path := fmt.Sprintf("d%02d/f%04d", i%20, i)
				write(b, root, path, specs[0])
				for v := range plans {
					plans[v].Changes = append(plans[v].Changes, change(path, specs[v], specs[1-v]))
				}
			}
			w := open(b, root, repo.Options{})
			round := 0
			cpu(b, func() {
				tx := fmt.Sprint("TX-", round)
				_, err := w.Apply(b.Context(), tx, 1, plans[round%2])
				must(b, err)
				must(b, w.Finish(b.Context(), tx, 1))
				round++
			})
		})
	}
}

// BenchmarkCandidate is on a repository of 10,000 files with a few uncommitted.
func BenchmarkCandidate(b *testing.B) {
	files := map[string]spec{}
	for i := range 10_000 {
		files[fmt.Sprintf("d%02d/f%05d", i/100, i)] = fmt.Sprintf("100644 file %d\n", i)
	}
	root := gitRepo(b, files)
	w := open(b, root, repo.Options{})
	for i := range 5 {
		write(b, root, fmt.Sprint("untracked", i), "100644 u\n")
	}
	changes := []patch.Change{change("new/file", "", "100644 n\n")}
	b.Run("id", func(b *testing.B) {
		cpu(b, func() {
			_, err := w.Candidate(b.Context(), changes)
			must(b, err)
		})
	})
	b.Run("directory digest", func(b *testing.B) {
		cpu(b, func() {
			_, _, err := w.Digest(b.Context(), "directory", "")
			must(b, err)
		})
	})
	b.Run("materialise", func(b *testing.B) {
		cpu(b, func() {
			_, err := w.Materialise(b.Context(), changes, b.TempDir())
			must(b, err)
		})
	})
	b.Run("snapshot of a path", func(b *testing.B) {
		cpu(b, func() {
			_, err := w.Snapshot(b.Context(), []string{"d00/f00000"})
			must(b, err)
		})
	})
}

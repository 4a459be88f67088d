package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"text/tabwriter"
	"time"

	"roundtable/internal/blob"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
	"roundtable/internal/world"
)

// PatchSettings say how to measure validation and apply.
type PatchSettings struct {
	Dir     string           // an existing folder for the repositories, which are left in it
	Files   []int            // sizes of the repositories
	Sizes   []int            // files of the patches
	Rounds  int              // for each size of patch
	Seed    uint64           // of the order
	Now     func() time.Time // a clock with a monotonic reading
	Attrs   string           // what every repository's .gitattributes says; none if empty
	UserEnv []string         // the person's environment, for git's own configuration
}

// A PatchResult is what one contender came to with one repository and one size
// of patch: medians of the rounds.
type PatchResult struct {
	Contender string  `json:"contender"`
	Files     int     `json:"repository_files"`
	Size      int     `json:"patch_files"`
	Wall      float64 `json:"wall_ms"`
	CPU       float64 `json:"cpu_ms"`     // of the process and those it started
	Check     float64 `json:"cpu_ratio"`  // to git apply --check on the same repository: median of the rounds' ratios
	Small     float64 `json:"size_ratio"` // to the same contender on the first repository, the same
	Alloc     float64 `json:"alloc_mb"`   // allocated in the process
	Peak      float64 `json:"peak_mb"`    // resident memory of the process at its highest; 0 if the system does not say
}

// A job is a contender on a repository with a patch.
type job struct {
	name   string
	lab    *lab
	before func(ctx context.Context) error // not measured
	do     func(ctx context.Context) error
	after  func(ctx context.Context) error // not measured
	cheap  bool                            // repeated within one measurement
}

// A lab is a repository with what works on it.
type lab struct {
	sample
	world *world.World
	space *repo.Workspace
	tx    int

	touched time.Time // what a file was last made to have been changed at
}

// Patch measures, side by side and in random order, what git and this program
// need to judge and to apply patches.
func Patch(ctx context.Context, s PatchSettings, out, progress io.Writer) (results []PatchResult, err error) {
	if s.Rounds < 1 || len(s.Files) == 0 || len(s.Sizes) == 0 {
		return nil, errors.New("rounds, sizes of repositories and sizes of patches are needed")
	}
	blobs, err := blob.Open(filepath.Join(s.Dir, "blobs"), blob.Options{})
	if err != nil {
		return nil, err
	}
	w := world.New(blobs, filepath.Join(s.Dir, "data"), repo.Options{UserEnv: s.UserEnv, Path: os.Getenv("PATH")})
	defer func() { err = errors.Join(err, w.Close(), blobs.Close()) }()
	var labs []*lab
	for _, n := range s.Files {
		fmt.Fprintf(progress, "generating a repository of %d files\n", n)
		l := &lab{world: w, touched: time.Unix(1_700_000_000, 0)}
		if l.sample, err = generate(ctx, s.Dir, n, s.Attrs); err != nil {
			return nil, err
		}
		if l.space, err = w.Workspace(ctx, l.root); err != nil {
			return nil, err
		}
		labs = append(labs, l)
	}
	rnd := rand.New(rand.NewPCG(s.Seed, 0))
	for _, size := range s.Sizes {
		fmt.Fprintf(progress, "measuring patches of %d files\n", size)
		some, err := measurePatches(ctx, s, rnd, labs, size)
		if err != nil {
			return nil, err
		}
		results = append(results, some...)
	}
	return results, printPatches(out, results)
}

// measurePatches runs every contender on every repository in each round. A
// first round is thrown away: it fills caches.
func measurePatches(ctx context.Context, s PatchSettings, rnd *rand.Rand, labs []*lab, size int) ([]PatchResult, error) {
	var jobs []job
	for _, l := range labs {
		some, err := l.contenders(ctx, s.Dir, min(size, l.files))
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, some...)
	}
	each := len(jobs) / len(labs)
	rounds := make([][]PatchResult, s.Rounds)
	for round := -1; round < s.Rounds; round++ {
		done := make([]PatchResult, len(jobs))
		for _, i := range rnd.Perm(len(jobs)) {
			var err error
			if done[i], err = jobs[i].measure(ctx, s.Now, size); err != nil {
				return nil, fmt.Errorf("%s, repository of %d files, patch of %d: %w", jobs[i].name, jobs[i].lab.files, size, err)
			}
		}
		if round < 0 {
			continue
		}
		for i := range done {
			done[i].Check = done[i].CPU / done[i/each*each].CPU
			done[i].Small = done[i].CPU / done[i%each].CPU
		}
		rounds[round] = done
	}
	var results []PatchResult
	for i := range jobs {
		results = append(results, medians(rounds, i))
	}
	return results, nil
}

// medians joins what contender i did in the rounds.
func medians(rounds [][]PatchResult, i int) PatchResult {
	r := rounds[0][i]
	for _, field := range []func(*PatchResult) *float64{
		func(r *PatchResult) *float64 { return &r.Wall }, func(r *PatchResult) *float64 { return &r.CPU },
		func(r *PatchResult) *float64 { return &r.Check }, func(r *PatchResult) *float64 { return &r.Small },
		func(r *PatchResult) *float64 { return &r.Alloc }, func(r *PatchResult) *float64 { return &r.Peak },
	} {
		var all []float64
		for _, round := range rounds {
			all = append(all, *field(&round[i]))
		}
		*field(&r) = median(all)
	}
	return r
}

// measure does the job once, or as often as a cheap one needs for its time to
// be told from the clock's steps.
func (j job) measure(ctx context.Context, now func() time.Time, size int) (r PatchResult, err error) {
	r = PatchResult{Contender: j.name, Files: j.lab.files, Size: size}
	times := 1
	if j.cheap && size < 100 {
		times = 10
	}
	runtime.GC()
	tracked := forgetPeak() == nil
	for range times {
		if err := j.before(ctx); err != nil {
			return r, err
		}
		var was, is runtime.MemStats
		runtime.ReadMemStats(&was)
		cpu, err := allCPU()
		if err != nil {
			return r, err
		}
		start := now()
		if err := j.do(ctx); err != nil {
			return r, err
		}
		r.Wall += float64(now().Sub(start).Microseconds()) / 1000 / float64(times)
		used, err := allCPU()
		if err != nil {
			return r, err
		}
		r.CPU += float64((used - cpu).Microseconds()) / 1000 / float64(times)
		runtime.ReadMemStats(&is)
		r.Alloc += float64(is.TotalAlloc-was.TotalAlloc) / (1 << 20) / float64(times)
		if err := j.after(ctx); err != nil {
			return r, err
		}
	}
	if tracked {
		r.Peak, err = peakMB()
	}
	return r, err
}

func printPatches(w io.Writer, results []PatchResult) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	size, files := 0, 0
	for _, r := range results {
		if r.Size != size || r.Files != files {
			size, files = r.Size, r.Files
			fmt.Fprintf(t, "\t\t\t\t\t\t\t\npatch of %d, repository of %d\twall ms\tCPU ms\t× --check\t× first\tMB allocated\tpeak MB\t\n", size, files)
		}
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.2f\t%.2f\t%.1f\t%.0f\t\n", r.Contender, r.Wall, r.CPU, r.Check, r.Small, r.Alloc, r.Peak)
	}
	return t.Flush()
}

// changes makes a plan of images.
func changes(images []patch.Image) (all []patch.Change) {
	for _, m := range images {
		all = append(all, patch.Change{Path: m.Path, Before: m.Before, After: m.After, Content: m.New})
	}
	return all
}

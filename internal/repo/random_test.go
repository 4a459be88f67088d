package repo_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"roundtable/internal/patch"
)

// An apply of many files is killed at moments that are nobody's choice, so
// also within a step.
func TestKilledAnywhere(t *testing.T) {
	rounds, files := 4, 200
	if os.Getenv("ROUNDTABLE_LONG") != "" {
		rounds, files = 60, 1000
	}
	k := killing{root: memory(t), blobs: memory(t)}
	var changes, back []patch.Change
	for i := range files {
		path := fmt.Sprintf("d%d/f%d", i%7, i)
		write(t, k.root, path, "100644 one\n")
		changes = append(changes, change(path, "100644 one\n", "100644 two\n"))
		back = append(back, change(path, "100644 two\n", "100644 one\n"))
	}
	k.before = listing(t, k.root, false)
	j := k.apply(0)
	j.Apply = changes
	start := time.Now()
	j.run(t) // how long it takes here
	took := time.Since(start)
	k.after = listing(t, k.root, false)
	ended := map[string]int{"after": 1}
	rnd := rand.New(rand.NewPCG(uint64(took), 1))
	for range rounds {
		if j.Apply = changes; k.state(t) == "after" {
			j.Apply = back
		}
		cmd := j.command(t)
		must(t, cmd.Start())
		wait := time.AfterFunc(time.Duration(rnd.Int64N(int64(took))), func() {
			if err := cmd.Process.Kill(); err != nil && err != os.ErrProcessDone {
				t.Error(err)
			}
		})
		err := cmd.Wait()
		wait.Stop()
		k.recovery(0).run(t)
		ended[fmt.Sprintf("%s, killed: %v", k.settled(t, "killed somewhere"), err != nil)]++
	}
	t.Logf("%v", ended)
}

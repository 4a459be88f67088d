package patch_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"roundtable/internal/patch"
)

// TestMemory: at no time does a patch take more than ten times the memory of
// the patch and the files before and after it, and 2 KiB for each file, of
// which there are at most 2,000, for what the result says of it; whatever its
// numbers say.
func TestMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	zeros := strings.Repeat("0", 40)
	binary := func(kind string, size int, data []byte) string {
		return fmt.Sprintf("diff --git a/k b/k\nindex %s..%s1 100644\nGIT binary patch\n%s %d\n%s\n", patch.BlobID([]byte("k\n"), false), zeros[1:], kind, size, armour(t, data))
	}
	many := strings.Builder{}
	for i := range 2000 {
		fmt.Fprintf(&many, "diff --git a/n%d b/n%d\nnew file mode 100644\n", i, i)
	}
	for name, text := range map[string]string{
		"huge counts":       "--- a/k\n+++ b/k\n@@ -1,1099511627775 +1,1099511627775 @@\n" + strings.Repeat(" k\n", 1<<18),
		"many sections":     many.String(),
		"too many sections": strings.Repeat(many.String(), 20),
		"deep quoting":      "diff --git \"a/" + strings.Repeat(`\\`, 1<<19) + "\" \"b/" + strings.Repeat(`\\`, 1<<19) + "\"\nold mode 100644\nnew mode 100755\n",
		"octal quoting":     "--- \"a/" + strings.Repeat(`\303\251`, 1<<17) + "\"\n+++ b/k\n@@ -1 +1 @@\n-k\n+K\n",
		"delta of 256 MB":   binary("delta", 20, []byte{2, 0x80, 0x80, 0x80, 0x80, 1, 0xff, 0, 0, 0, 0, 0, 0, 0x10, 0x90, 1, 0x90, 1, 0x90, 1}),
		"literal of 1 TB":   binary("literal", 1<<40, []byte("x")),
		"inflates to more":  binary("literal", 100, make([]byte, 8<<20)),
		"one-line hunks":    "--- a/k\n+++ b/k\n" + strings.Repeat("@@ -1 +1 @@\n-k\n+K\n", 1<<16),
		"blank lines":       "--- /dev/null\n+++ b/n\n@@ -0,0 +1,1000000 @@\n" + strings.Repeat("+\n", 1_000_000),
	} {
		tree := patch.NewMapTree()
		tree.Put("k", "100644", []byte("k\n"))
		data := []byte(text)
		var res *patch.Result
		var err error
		peak := peakOf(func() { res, err = apply(data, patch.Options{}, tree) })
		input, files := len(data), 1
		if err == nil {
			files = len(res.Changes)
			for _, c := range res.Changes {
				input += len(c.Content)
			}
		}
		t.Logf("%s: %d bytes at most for %d: %.120v", name, peak, input, err)
		if peak > 10*input+files*(2<<10)+1<<20 {
			t.Errorf("%s takes %d bytes for %d", name, peak, input)
		}
		runtime.KeepAlive(res)
	}
}

// peakOf runs f and gives by how much the heap grew at most, as far as it was
// seen while f ran.
func peakOf(f func()) int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, m.HeapAlloc
	done := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
			select {
			case <-done:
				return
			default:
				runtime.Gosched()
			}
		}
	})
	f()
	close(done)
	looking.Wait()
	runtime.ReadMemStats(&m)
	return int(max(most, m.HeapAlloc) - before)
}

package process_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
)

// A file system that cannot exchange two files is told to the operator at each
// start, and one that can is not.
func TestTellsOfNoExchange(t *testing.T) {
	for _, cannot := range []bool{false, true} {
		b := setUp(t, map[string]string{"a.txt": "a\n"})
		restore := calls.Inject(func(c calls.Call) error {
			if cannot && c.What == "renameat2" {
				return unix.EINVAL
			}
			return nil
		})
		var said bytes.Buffer
		apply := b.apply
		apply.Log = slog.New(slog.NewTextHandler(&said, nil))
		err := apply.Recover(t.Context())
		restore()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(said.String(), "atomic_detect=false"); got != cannot {
			t.Errorf("cannot exchange is %v, and it says %q", cannot, &said)
		}
	}
}

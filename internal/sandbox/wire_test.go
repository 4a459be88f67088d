package sandbox

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOrderStaysOpen: reading the order takes nothing from who reads it next,
// whatever the collector does in between.
func TestOrderStaysOpen(t *testing.T) {
	f, err := order{Path: "/bin/true"}.file()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 50)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if o, err := readOrder(fd); err != nil || o.Path != "/bin/true" {
			t.Fatalf("%+v, %v", o, err)
		}
		collected := make(chan struct{})
		runtime.SetFinalizer(&struct{ text string }{"garbage"}, func(any) { close(collected) })
		for waiting := true; waiting; {
			runtime.GC() // cleans up what the read left, in its own time
			select {
			case <-collected:
				waiting = false
			default:
			}
		}
	}
	if err := unix.Close(fd); err != nil {
		t.Errorf("the order was closed meanwhile: %v", err)
	}
}

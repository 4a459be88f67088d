package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"roundtable/internal/runner"
	"roundtable/internal/symbol"
	"roundtable/internal/testy"
)

// asProgram in the environment makes the test binary be the program itself, so
// that tests can start it and kill it.
const asProgram = "ROUNDTABLE_TEST_MAIN"

// TestMain lets the test binary be what the program starts of itself, and the
// program: by the environment, or called roundtable, as which it is on the
// PATH of every test.
func TestMain(m *testing.M) {
	if status, handled := runner.Main(os.Args); handled {
		os.Exit(status)
	}
	if status, handled := symbol.Main(os.Args); handled {
		os.Exit(status)
	}
	if os.Getenv(asProgram) != "" {
		main()
	}
	if os.Getenv(asTesty) != "" {
		os.Exit(testy.Main(os.Args[1:]))
	}
	// The race detector's wait at the end of a program is for its own threads'
	// last words; the many short programs of these tests have none.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"roundtable": main})
}

// long says whether the slow proofs run too.
func long() bool { return os.Getenv("ROUNDTABLE_LONG") != "" }

package main

import (
	"os"
	"testing"

	"roundtable/internal/sandbox"
)

// asProgram in the environment makes the test binary be the program itself, so
// that tests can start it and kill it.
const asProgram = "ROUNDTABLE_TEST_MAIN"

func TestMain(m *testing.M) {
	if status, handled := sandbox.Main(os.Args); handled {
		os.Exit(status)
	}
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// long says whether the slow proofs run too.
func long() bool { return os.Getenv("ROUNDTABLE_LONG") != "" }

// Command testy is a deterministic ACP agent on stdin and stdout, for the tests
// of ACP clients. This package only wires: the agent is internal/testy.
package main

import (
	"os"

	"roundtable/internal/testy"
)

func main() { os.Exit(testy.Main(os.Args[1:])) }

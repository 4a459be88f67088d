package testy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// faultSet are the faults that were asked for, with their numbers.
type faultSet map[string]int

func (s faultSet) has(name string) bool {
	_, ok := s[name]
	return ok
}

type faultInfo struct {
	name, arg string // arg is the default of the number; "" takes none
	doc       string
}

// faultTable is every way to misbehave.
func faultTable() []faultInfo {
	return []faultInfo{
		{"noise", "", "a coloured warning on stdout before the first frame and before each prompt response"},
		{"bad-line", "", "a line that is not JSON after the first update of each turn"},
		{"bad-utf8", "", "an update per turn with a byte that is not UTF-8"},
		{"split-writes", "", "every frame in pieces of 7 bytes"},
		{"huge-line", "67108864", "the final chunk's line is padded to that many bytes"},
		{"half-line", "", "half of the first update of the next turn, and exits with 7"},
		{"late-answer", "300", "each prompt response that many milliseconds late, and all that follows"},
		{"late-update", "", "an update after each prompt response (v2: after idle)"},
		{"response-first", "", "the response before the final chunk"},
		{"early-update", "", "an update for a new session before the response that introduces it"},
		{"late-replay", "", "session/load (v2: resume) answers first and replays then"},
		{"exit", "7", "exits with that code after the first update of the next turn"},
		{"kill", "", "kills itself at that point"},
		{"hang", "", "never answers session/prompt, ignores cancel"},
		{"hang-init", "", "never answers initialize"},
		{"ignore-cancel", "", "ignores session/cancel, and close as a cancellation"},
		{"cancel-error", "", "answers a cancelled turn with an error"},
		{"cancel-end-turn", "", "answers a cancelled turn with end_turn"},
		{"double-response", "", "every prompt response twice"},
		{"wrong-id", "", "prompt responses have an id nobody asked with"},
		{"string-id", "", "integer ids are answered as strings"},
		{"unknown-update", "", "each turn starts with an update of an unknown kind"},
		{"unknown-stop", "", "an unknown stop reason"},
		{"unknown-session", "", "an update per turn for a session that does not exist"},
		{"unannounced-tool", "", "a tool_call_update that was never announced"},
		{"version", "99", "initialize answers with that protocol version"},
		{"null-arrays", "", "null for required arrays"},
		{"malformed-optional", "", "optional properties of a wrong type"},
		{"unadvertised-call", "", "requests per turn that the client may not have offered"},
		{"flood", "10000", "that many updates per turn"},
		{"stderr-flood", "8", "that many MiB to stderr per turn"},
		{"ignore-eof", "", "does not exit when stdin ends"},
		{"ignore-term", "", "as ignore-eof, and ignores SIGTERM"},
		{"orphan", "", "starts a child in a session of its own that keeps stderr open"},
	}
}

func parseFaults(text string) (faultSet, error) {
	set := faultSet{}
	table := faultTable()
	for _, part := range strings.Split(text, ",") {
		name, arg, hasArg := strings.Cut(part, "=")
		i := slices.IndexFunc(table, func(f faultInfo) bool { return f.name == name })
		switch {
		case i < 0:
			return nil, fmt.Errorf("unknown fault %q; --fault=list prints them", name)
		case table[i].arg == "" && hasArg:
			return nil, fmt.Errorf("fault %s takes no number", name)
		case table[i].arg == "":
			set[name] = 0
			continue
		case !hasArg:
			arg = table[i].arg
		}
		n, err := strconv.Atoi(arg)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("fault %s takes a number from 0, not %q", name, arg)
		}
		set[name] = n
	}
	return set, nil
}

// HasFault reports whether a fault was asked for.
func (o Options) HasFault(name string) bool { return o.faults.has(name) }

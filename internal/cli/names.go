package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"roundtable/internal/op"
)

// A command is an op under the words that call it.
type command struct {
	o    op.Op
	noun string
	verb string // "" where the noun alone is the command
}

func (c command) words() string { return strings.TrimSuffix(c.noun+" "+c.verb, " ") }

// better are the words of ops whose own name is not what a person would type.
// The name itself works too.
var better = map[string]string{
	"approval.approve":       "approve",
	"human.approval_status":  "approval get",
	"human.request_approval": "approval request",
	"patch.apply":            "apply",
	"patch.reject":           "proposal reject",
	"patch.validate":         "proposal validate",
	"proposal.attach_patch":  "proposal attach",
	"resource.claim":         "claim take",
	"resource.claim_status":  "claim list",
	"resource.extend":        "claim extend",
	"resource.release":       "claim release",
	"table.get_state":        "state",
	"test.get_result":        "test get",
}

// shorter are nouns that have a short form.
var shorter = map[string]string{"transaction": "tx", "test_run": "test"}

// commandOf returns o under the words that help shows.
func commandOf(o op.Op) command {
	words := better[o.Name]
	if words == "" {
		noun, verb, _ := strings.Cut(o.Name, ".")
		words = cmp.Or(shorter[noun], noun) + " " + verb
	}
	noun, verb, _ := strings.Cut(strings.ReplaceAll(words, "_", "-"), " ")
	return command{o, noun, verb}
}

// find returns the command that the arguments name and the arguments after
// it, or what to do instead.
func (env Env) find() (c command, rest []string, instead func() int) {
	word := func(i int) string {
		if i < len(env.Args) {
			return strings.ReplaceAll(env.Args[i], "_", "-")
		}
		return ""
	}
	noun, verb := word(0), word(1)
	if noun == "" || isHelp(noun) || noun == "help" {
		return c, nil, func() int { return env.help(isHelp(noun) || noun == "help") }
	}
	var same []command
	for _, c := range commandsOf(env.Ops) {
		own, ownVerb, _ := strings.Cut(strings.ReplaceAll(c.o.Name, "_", "-"), ".")
		switch {
		case c.verb == "" && c.noun == noun:
			return c, env.Args[1:], nil
		case c.noun == noun && c.verb == verb, own == noun && ownVerb == verb, shorter[own] == noun && ownVerb == verb:
			return c, env.Args[2:], nil
		}
		if c.noun == noun || own == noun {
			same = append(same, c)
		}
	}
	if len(same) == 0 {
		return c, nil, func() int {
			fmt.Fprintf(env.Stderr, "roundtable: there is no command %s\nSee: roundtable --help\n", plain(noun))
			return Usage
		}
	}
	asked := isHelp(verb)
	return c, nil, func() int {
		w, code := env.Stdout, Done
		if !asked {
			w, code = env.Stderr, Usage
			if verb != "" {
				fmt.Fprintf(w, "roundtable: %s has no command %s\n\n", plain(noun), plain(verb))
			}
		}
		env.list(w, same)
		if more := env.Beside[same[0].noun]; more != "" {
			fmt.Fprintf(w, "\n%s\n", more)
		}
		return code
	}
}

func isHelp(word string) bool { return word == "--help" || word == "-h" || word == "-help" }

// help lists all commands.
func (env Env) help(asked bool) int {
	w, code := env.Stdout, Done
	if !asked {
		w, code = env.Stderr, Usage
	}
	fmt.Fprintln(w, "Usage: roundtable <noun> <verb> [ids] [--flag value …]")
	fmt.Fprintln(w)
	all := commandsOf(env.Ops)
	env.list(w, all)
	return code
}

// list writes commands with what they do.
func (env Env) list(w io.Writer, cs []command) {
	t := table{}
	for _, c := range cs {
		t.row("  roundtable "+c.words(), env.doc(c.o.Doc))
	}
	t.write(w)
}

// commandsOf returns the ops as commands, sorted by their words.
func commandsOf(ops []op.Op) []command {
	cs := make([]command, len(ops))
	for i, o := range ops {
		cs[i] = commandOf(o)
	}
	slices.SortFunc(cs, func(a, b command) int { return cmp.Compare(a.words(), b.words()) })
	return cs
}

// List writes each op's command, its own name and what it does, one a line,
// and returns the exit code.
func List(stdout, stderr io.Writer, ops []op.Op) int {
	env := Env{Ops: ops}
	t := table{}
	t.row("COMMAND", "OPERATION", "WHAT IT DOES")
	for _, c := range commandsOf(ops) {
		t.row(c.words(), c.o.Name, env.doc(c.o.Doc))
	}
	out := &checked{Writer: stdout}
	t.write(out)
	if out.err != nil {
		fmt.Fprintf(stderr, "roundtable ops: cannot write the answer: %v\n", out.err)
		return Failed
	}
	return Done
}

// Package rules judges the wire between an ACP client and an agent: it reads
// the frames of a transcript in their order and reports what the agent did
// against the protocol.
//
// What always holds: the findings depend on the frames alone, so that a
// transcript judged again gives the same findings; memory is bounded, however
// long the transcript; and a rule reports at most [MaxPerRule] findings.
package rules

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"roundtable/internal/acp"
	"roundtable/internal/acp/schema"
)

// MaxPerRule is how many findings of a rule are kept; the others are counted.
const MaxPerRule = 50

// maxText is the length of a quoted line in a finding, in bytes.
const maxText = 4 << 10

// The levels of a rule.
const (
	Must   = "must"
	Should = "should"
)

// A Finding is one breach of a rule.
type Finding struct {
	Rule      string        `json:"rule"`
	Level     string        `json:"level"`
	Direction acp.Direction `json:"-"`
	Lines     []int         `json:"lines"` // sequence numbers of the frames
	Text      string        `json:"text"`
}

// String is the finding on one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s (%s) lines %v: %s", f.Rule, f.Level, f.Lines, f.Text)
}

// A Checker judges one connection. It is not safe for concurrent use.
type Checker struct {
	versions []int // that the client supports
	schemas  map[int]*schema.Set
	next     bool

	version  int // that was agreed on; 0 before
	findings []Finding
	counts   map[string]int

	ours     map[acp.ID]*request // of the client, not answered
	answered map[acp.ID]bool
	theirs   map[acp.ID]string // method of a request of the agent, not answered
	offered  offer
	sessions map[string]*session
	early    map[string][]int // frames of updates for ids that nobody has introduced
	nEarly   int
	terms    map[string]int // terminals that are not released, and their frames
}

// request is a request of the client.
type request struct {
	method, session string
	line            int
	replays         bool // it asks for the history
	content         int  // of a resume: an update of the conversation came before the answer
}

// New judges for a client that supports the given versions of the protocol;
// next says which draft of version 2 is meant.
func New(next bool, versions ...int) (*Checker, error) {
	schemas, err := Schemas(next)
	if err != nil {
		return nil, err
	}
	return NewWith(schemas, next, versions...), nil
}

// Schemas are what checkers judge by, of both versions; next takes the newer
// copies. Many checkers may share them.
func Schemas(next bool) (map[int]*schema.Set, error) {
	schemas := map[int]*schema.Set{}
	for version := 1; version <= 2; version++ {
		set, err := schema.Load(version, next)
		if err != nil {
			return nil, err
		}
		schemas[version] = set
	}
	return schemas, nil
}

// NewWith is New with schemas that were loaded before.
func NewWith(schemas map[int]*schema.Set, next bool, versions ...int) *Checker {
	return &Checker{
		versions: versions, schemas: schemas, next: next, counts: map[string]int{},
		ours: map[acp.ID]*request{}, answered: map[acp.ID]bool{}, theirs: map[acp.ID]string{},
		sessions: map[string]*session{}, early: map[string][]int{}, terms: map[string]int{},
	}
}

// Observe judges the next frame.
func (c *Checker) Observe(f acp.Frame) {
	if f.Dir == acp.Out {
		c.out(f)
		return
	}
	switch {
	case f.TooLong:
		c.find("transport.size", Must, f, "a line over the limit begins "+quote(f.Line))
		return
	case len(trim(f.Line)) == 0:
		return
	case !utf8.Valid(f.Line):
		c.find("transport.utf8", Must, f, "not UTF-8: "+quote(f.Line))
		return
	}
	d := f.Read
	if d == nil { // from a stored transcript
		d = &acp.Decoded{}
		d.Messages, d.Batch, d.Err = acp.Decode(f.Line)
	}
	if d.Err != nil || d.Batch && c.next {
		c.find("transport.json", Must, f, "no JSON-RPC message: "+quote(f.Line))
		return
	}
	for _, m := range d.Messages {
		c.rootFields(f, m)
		switch m.Kind {
		case acp.Invalid:
			c.find("transport.json", Must, f, "no JSON-RPC message: "+quote(f.Line))
		case acp.Malformed:
			c.find("response.shape", Must, f, "not exactly one of result and error with code and message: "+quote(f.Line))
		case acp.Response:
			c.response(f, m)
		default:
			c.call(f, m)
		}
	}
}

// Finish judges what can only be judged at the end. Asked says that the agent
// was to end because its input was closed, ended that it did so in time.
func (c *Checker) Finish(asked, ended bool) {
	if asked && !ended {
		c.add(Finding{"exit.eof", Should, acp.In, nil, "the agent did not exit when its input was closed"})
	}
	for id, line := range sorted(c.terms) {
		if asked && ended {
			c.add(Finding{"terminal.release", Should, acp.In, []int{line}, fmt.Sprintf("terminal %s was never released", id)})
		}
	}
	for id := range sorted(c.early) {
		c.unknown(id)
	}
	for _, s := range sorted(c.sessions) {
		for _, t := range s.turns {
			if t.cancelled > 0 {
				c.add(Finding{"cancel.result", Must, acp.In, []int{t.line, t.cancelled}, "a cancelled turn never ended"})
			}
		}
	}
}

// Overdue says that the cancelled turns of a session have not ended in the time
// that the client gave them.
func (c *Checker) Overdue(session string) {
	s := c.sessions[session]
	if s == nil {
		return
	}
	for _, t := range s.turns {
		if t.cancelled > 0 {
			c.add(Finding{"cancel.result", Must, acp.In, []int{t.line, t.cancelled}, "a cancelled turn did not end in time"})
			t.cancelled = 0
		}
	}
}

// Findings are all findings so far, in order.
func (c *Checker) Findings() []Finding { return slices.Clone(c.findings) }

// Len is how many findings there are so far.
func (c *Checker) Len() int { return len(c.findings) }

// Count is how many findings a rule has, also those that were not kept.
func (c *Checker) Count(rule string) int { return c.counts[rule] }

func (c *Checker) find(rule, level string, f acp.Frame, text string) {
	c.add(Finding{rule, level, f.Dir, []int{f.Seq}, text})
}

func (c *Checker) add(f Finding) {
	c.counts[f.Rule]++
	if c.counts[f.Rule] <= MaxPerRule {
		c.findings = append(c.findings, f)
	}
}

func quote(line []byte) string {
	if len(line) > maxText {
		return string(line[:maxText]) + "..."
	}
	return string(line)
}

func trim(line []byte) []byte {
	for len(line) > 0 && (line[0] == ' ' || line[0] == '\t' || line[0] == '\r') {
		line = line[1:]
	}
	return line
}

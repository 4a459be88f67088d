package repo

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"roundtable/internal/patch"
)

// A journal is what recovery works from: it says what each path was and was to
// become, and nothing about progress.
type journal struct {
	Version int         `json:"version"`
	Tx      string      `json:"transaction_id"`
	Attempt int         `json:"attempt"`
	Origin  string      `json:"origin,omitempty"` // of the folder it lies in; none from versions that wrote none
	Aside   bool        `json:"aside,omitempty"`  // replacements go by link and rename, for want of an exchange
	Ops     []operation `json:"operations"`
	Made    []name      `json:"folders_made,omitempty"`    // parents first
	Emptied []folder    `json:"folders_removed,omitempty"` // deepest first
	Ref     *refMove    `json:"branch,omitempty"`          // where the changes are committed
}

// The versions of a journal. One with a branch says so by its version: a
// program that knows no branches must not take it back.
const (
	journalVersion       = 1
	journalVersionBranch = 2
)

// moves are the operations that are done to files: none where the branch is
// checked out nowhere.
func (j journal) moves() []operation {
	if j.Ref != nil && !j.Ref.Here {
		return nil
	}
	return j.Ops
}

// A kind is what an operation does to its path.
type kind string

const (
	create  kind = "create"
	replace kind = "replace"
	remove  kind = "delete"
)

// An operation is the change of one path. Its place in the list names its slot.
type operation struct {
	Kind   kind        `json:"kind"`
	Path   name        `json:"path"`
	Before patch.State `json:"before"`
	After  patch.State `json:"after"`
	Kept   *keptStates `json:"kept,omitempty"` // where git keeps other bytes than lie in the work tree
}

// keptStates are an operation's in the bytes that git keeps, which is how
// everybody else knows them where changes are committed.
type keptStates struct {
	Before patch.State `json:"before"`
	After  patch.State `json:"after"`
}

// A folder is one that the changes empty and that a rollback remakes.
type folder struct {
	Path   name              `json:"path"`
	Perm   uint32            `json:"perm"`
	UID    int               `json:"uid"`
	GID    int               `json:"gid"`
	Xattrs map[string][]byte `json:"xattrs,omitempty"`
}

// slot is the name in the transaction's folder that operation i uses.
func slot(i int) string { return fmt.Sprintf("%06d", i) }

// aside is the name of the displaced file where there is no exchange.
func aside(i int) string { return slot(i) + ".old" }

// encode returns the journal's bytes: one line, and its SHA-256.
func (j journal) encode() ([]byte, error) {
	if j.Ref != nil {
		j.Version = journalVersionBranch
	}
	b, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	b = append(b, '\n')
	sum := sha256.Sum256(b)
	return append(b, hex.EncodeToString(sum[:])+"\n"...), nil
}

var errDamaged = errors.New("the journal is damaged")

// decodeJournal is the inverse of encode. Anything that encode has not made is
// errDamaged.
func decodeJournal(b []byte) (journal, error) {
	var j journal
	line, sum, ok := strings.Cut(string(b), "\n")
	want := sha256.Sum256([]byte(line + "\n"))
	if !ok || sum != hex.EncodeToString(want[:])+"\n" {
		return j, errDamaged
	}
	if err := json.Unmarshal([]byte(line), &j); err != nil {
		return j, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if j.Version != journalVersion && (j.Version != journalVersionBranch || j.Ref == nil) {
		return j, fmt.Errorf("the journal has version %d, which this program does not know", j.Version)
	}
	return j, nil
}

// digest is the SHA-256 of what the journal plans.
func (j journal) digest() (string, error) {
	j.Origin = "" // where it lies is no part of the plan
	b, err := j.encode()
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), err
}

// states returns what each path was and becomes, as git keeps it where changes
// are committed.
func (j journal) states() (before, after map[string]patch.State) {
	before, after = map[string]patch.State{}, map[string]patch.State{}
	for _, op := range j.Ops {
		before[string(op.Path)], after[string(op.Path)] = op.asKeptState(op.Before), op.asKeptState(op.After)
	}
	return before, after
}

// A name is a path as JSON can hold it: what is not UTF-8, and %, stands as
// %XX.
type name string

// MarshalText implements encoding.TextMarshaler.
func (n name) MarshalText() ([]byte, error) {
	var b []byte
	for rest := string(n); rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if r == '%' || r == utf8.RuneError && size == 1 {
			b = fmt.Appendf(b, "%%%02X", rest[0])
		} else {
			b = append(b, rest[:size]...)
		}
		rest = rest[size:]
	}
	return b, nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *name) UnmarshalText(text []byte) error {
	var b []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b = append(b, text[i])
			continue
		}
		if i+3 > len(text) {
			return fmt.Errorf("bad escape in %q", text)
		}
		v, err := hex.DecodeString(string(text[i+1 : i+3]))
		if err != nil {
			return fmt.Errorf("bad escape in %q: %w", text, err)
		}
		b = append(b, v...)
		i += 2
	}
	*n = name(b)
	return nil
}

func names(paths []string) []name {
	out := make([]name, len(paths))
	for i, p := range paths {
		out[i] = name(p)
	}
	return slices.Clip(out)
}

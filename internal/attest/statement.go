package attest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"roundtable/events"
)

// What a statement says of its own form. The predicate is named as the
// project's other names are; a change of its form is another name.
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "urn:roundtable:transaction-receipt:v1"
)

// TreeName is the name of the subject that is the whole tree: no path has it.
const TreeName = "."

// A Statement is what is signed: an in-toto Statement v1. Its subjects are the
// tree after the transaction, and every touched file and link that it left.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Receipt   `json:"predicate"`
}

// A Subject is one thing that the statement is about: gitTree is the id of a
// Git tree, sha256 of the tree that of a plain folder's listing, of a path that
// of its bytes or of its link's text.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// A Receipt says of one applied transaction what it changed, on what it
// rested, and where the history says so.
type Receipt struct {
	Transaction   string              `json:"transaction_id"`
	Workspace     string              `json:"workspace_id"`
	WorkspaceKind string              `json:"workspace_kind"` // git or folder
	Proposal      string              `json:"proposal_id"`
	Revision      int                 `json:"revision"`
	Attempt       int                 `json:"attempt"`
	Compensates   string              `json:"compensates_transaction_id,omitempty"`
	PatchDigest   string              `json:"patch_digest"`
	PolicyDigest  string              `json:"policy_digest"`
	Base          Base                `json:"base"`
	Before        Side                `json:"before"`
	After         Side                `json:"after"`
	Commit        *Commit             `json:"commit,omitempty"` // none where only files changed
	Files         []File              `json:"files"`            // by path
	Gates         []events.GateResult `json:"gates"`            // as they stood when it was asked for
	Evidence      Evidence            `json:"evidence"`
	Tested        []string            `json:"tested_trees"`
	Fences        []events.Fence      `json:"fences"`
	Author        string              `json:"author"`
	AttachedBy    string              `json:"attached_by"`
	OpenedBy      string              `json:"opened_by"`
	RequestedBy   string              `json:"requested_by"`
	Reason        string              `json:"reason,omitempty"`
	OpenedAt      time.Time           `json:"opened_at"`
	RequestedAt   time.Time           `json:"requested_at"`
	AppliedAt     time.Time           `json:"applied_at"`
	Log           LogPlace            `json:"log"` // of transaction.applied
}

// A Base is what the revision was made on.
type Base struct {
	Commit      string `json:"commit,omitempty"`
	PathsDigest string `json:"paths_digest"`
}

// A Side is the touched paths and the whole tree, before or after.
type Side struct {
	PathsDigest string `json:"paths_digest"`
	Tree        string `json:"tree,omitempty"`
}

// A Commit is what the change was committed as: a commit of the tree after, on
// the parent, as the new head of the branch.
type Commit struct {
	ID     string `json:"id"`
	Parent string `json:"parent,omitempty"` // none of a branch's first commit
	Ref    string `json:"ref"`
}

// A File is one touched path.
type File struct {
	Path   string `json:"path"`
	Before State  `json:"before"`
	After  State  `json:"after"`
}

// A State is what one path holds.
type State struct {
	Kind   string `json:"kind"` // absent, file, symlink, dir or special
	Mode   string `json:"mode,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	Size   int64  `json:"size_bytes,omitempty"`
}

// A LogPlace is where the history has an event, and the hash of its row.
type LogPlace struct {
	Position int64  `json:"position"`
	Event    string `json:"event_id"`
	Hash     string `json:"hash"`
}

// PathsDigest is the SHA-256 over the files sorted by path, each as "kind SP
// mode SP size SP sha256 SP path NUL" with nothing where a state has nothing,
// in lowercase hex. It is written here once more because whoever checks a
// receipt must not have to trust the program that made it.
func PathsDigest(files []File, side func(File) State) string {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	h := sha256.New()
	for _, f := range files {
		s := side(f)
		fmt.Fprintf(h, "%s %s %d %s %s\x00", s.Kind, s.Mode, s.Size, s.SHA256, f.Path)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// before and after are the sides of a file, for PathsDigest.
func before(f File) State { return f.Before }
func after(f File) State  { return f.After }

// there reports whether the state is one with bytes.
func (s State) there() bool { return s.Kind == "file" || s.Kind == "symlink" }

// about makes the statement of a receipt.
func about(r Receipt) Statement {
	tree := "sha256"
	if r.WorkspaceKind == "git" {
		tree = "gitTree"
	}
	s := Statement{Type: StatementType, PredicateType: PredicateType, Predicate: r,
		Subject: []Subject{{TreeName, map[string]string{tree: r.After.Tree}}}}
	for _, f := range r.Files {
		if f.After.there() {
			s.Subject = append(s.Subject, Subject{f.Path, map[string]string{"sha256": f.After.SHA256}})
		}
	}
	return s
}

// parseStatement reads what was signed. Only the very bytes that encode writes
// are a statement: so no field stands twice, none is unknown, and nothing can be
// read in two ways.
func parseStatement(payload []byte) (s Statement, err error) {
	if err := strictJSON(payload); err != nil {
		return s, refuse(BadStatement, "what was signed is no statement: %v", err)
	}
	var head struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
	}
	if err := json.Unmarshal(payload, &head); err != nil {
		return s, refuse(BadStatement, "what was signed is no statement: %v", err)
	}
	if head.Type != StatementType || head.PredicateType != PredicateType {
		return s, refuse(BadStatement, "what was signed is a %.80q about a %.80q, and this version knows %q about %q", head.Type, head.PredicateType, StatementType, PredicateType)
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, refuse(BadStatement, "what was signed is no receipt that this version knows; a newer one may: %v", err)
	}
	again, err := s.encode()
	if err != nil {
		return s, err
	}
	if !bytes.Equal(again, payload) {
		return s, refuse(BadStatement, "what was signed is not written as a receipt is")
	}
	return s, s.check()
}

// encode writes the bytes that are signed.
func (s Statement) encode() ([]byte, error) {
	b, err := canonical(s)
	return bytes.TrimSuffix(b, []byte("\n")), err
}

// check refuses a statement that contradicts itself.
func (s Statement) check() error {
	r := s.Predicate
	bad := func(format string, args ...any) error { return refuse(Inconsistent, format, args...) }
	for i, f := range r.Files {
		if i > 0 && r.Files[i-1].Path >= f.Path {
			return bad("the path %q stands out of order or twice", f.Path)
		}
		for _, st := range []State{f.Before, f.After} {
			if err := st.check(); err != nil {
				return bad("%q: %v", f.Path, err)
			}
		}
		if f.Path == "" || f.Path == TreeName {
			return bad("%q is no path of a file", f.Path)
		}
	}
	switch {
	case len(r.Files) == 0:
		return bad("it changed nothing")
	case PathsDigest(r.Files, before) != r.Before.PathsDigest:
		return bad("the digest of the paths before is not that of the files")
	case PathsDigest(r.Files, after) != r.After.PathsDigest:
		return bad("the digest of the paths after is not that of the files")
	case !reflect.DeepEqual(s, about(r)):
		return bad("its subjects are not the tree and the files that it left")
	case r.WorkspaceKind != "git" && r.WorkspaceKind != "folder":
		return bad("the workspace is neither in Git nor a folder")
	case !isHex(r.After.Tree, 40, 64) || r.Before.Tree != "" && !isHex(r.Before.Tree, 40, 64):
		return bad("a tree is named by no id of one")
	case r.Commit != nil && (r.WorkspaceKind != "git" || !isHex(r.Commit.ID, 40, 64) || r.Commit.Parent != "" && !isHex(r.Commit.Parent, 40, 64) || r.Commit.Ref == ""):
		return bad("the commit is named by no id of one, or no branch")
	case !isHex(r.PatchDigest, 64) || !isHex(r.Log.Hash, 64) || r.Log.Position < 1:
		return bad("it lacks the patch or its place in the history")
	case r.Transaction == "" || r.Proposal == "" || r.Workspace == "" || r.Attempt < 1 || r.Revision < 1:
		return bad("it does not say which transaction it is about")
	}
	return nil
}

func (s State) check() error {
	switch {
	case s.there() && (!isHex(s.SHA256, 64) || s.Mode == "" || s.Size < 0):
		return fmt.Errorf("a %s lacks its mode or digest", s.Kind)
	case s.there():
		return nil
	case s.Kind != "absent" && s.Kind != "dir" && s.Kind != "special":
		return fmt.Errorf("%.20q is no kind", s.Kind)
	case s != (State{Kind: s.Kind}):
		return fmt.Errorf("what is %s has neither mode nor bytes", s.Kind)
	}
	return nil
}

func isHex(s string, lengths ...int) bool {
	return slices.Contains(lengths, len(s)) && strings.Trim(s, "0123456789abcdef") == ""
}

// Differences names the fields in which two receipts differ.
func Differences(a, b Receipt) []string {
	fields := func(r Receipt) map[string]json.RawMessage {
		data, err := canonical(r)
		if err != nil {
			panic(err) // a receipt can always be written
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(data, &m); err != nil {
			panic(err)
		}
		return m
	}
	x, y := fields(a), fields(b)
	all := maps.Clone(x)
	maps.Copy(all, y)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !bytes.Equal(x[name], y[name]) {
			out = append(out, name)
		}
	}
	return out
}

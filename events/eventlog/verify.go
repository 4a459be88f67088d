package eventlog

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"roundtable/events"
)

// A Reason is what is wrong at the first bad position.
type Reason string

// The reasons. Which of them a forger's traces look like is a judgement; that
// and where the history is not what was written is not.
const (
	Edited    Reason = "edited"    // a row is not what was hashed
	Missing   Reason = "missing"   // a row was taken out
	Inserted  Reason = "inserted"  // a row was put in
	Reordered Reason = "reordered" // rows were exchanged
	Truncated Reason = "truncated" // rows that were known to be there are cut off the end
	Replaced  Reason = "replaced"  // the rows are sound, and another history than was known
)

// A Point is a place in the log and the hash of its row, such as the head of
// an earlier report.
type Point struct {
	Position int64  `json:"position"`
	Hash     string `json:"hash"` // lowercase hex; "" at position 0
}

// A Report is what a verification found.
type Report struct {
	OK       bool   `json:"ok"`
	Events   int64  `json:"events"` // found good, before the first bad one
	FirstBad int64  `json:"first_bad_position,omitempty"`
	Reason   Reason `json:"reason,omitempty"`
	Detail   string `json:"detail,omitempty"`
	Head     Point  `json:"head"` // the last good row
	// Root is the head of the Merkle tree (RFC 6962, as golang.org/x/mod/sumdb/tlog
	// has it) whose leaves are the 32-byte row hashes from position 1 to Head;
	// lowercase hex, "" if the verification did not begin at position 1.
	Root string `json:"root_hash,omitempty"`
}

// Verify reads records and says whether they are one unbroken history that
// begins after start: the zero Point for a whole log. known are points kept
// elsewhere, such as signed checkpoints: only against these can a cut tail, or
// a history that was written anew as a whole, be seen. An error means that
// records could not be read, and nothing about the history.
//
// Memory is bounded but for one number per stream. After a start other than
// zero the first version of each stream is believed.
func Verify(ctx context.Context, records iter.Seq2[events.Record, error], start Point, known ...Point) (Report, error) {
	v, err := newVerifier(start, known)
	if err != nil {
		return Report{}, err
	}
	next, stop := iter.Pull2(records)
	defer stop()
	for {
		if err := ctx.Err(); err != nil {
			return v.report, err
		}
		r, err, ok := next()
		switch {
		case err != nil:
			return v.report, err
		case !ok:
			v.end()
			return v.report, nil
		case !v.good(&r):
			// What follows tells an edit from a removal, an insertion or an exchange.
			after, err := ahead(next)
			if err != nil {
				return v.report, err
			}
			v.judge(&r, after)
			return v.report, nil
		}
	}
}

// VerifyTail verifies the last n events of s, which is what a start does: the
// hash of the row before them is believed.
func VerifyTail(ctx context.Context, s Source, n int64) (Report, error) {
	head, _, err := s.Head(ctx)
	if err != nil {
		return Report{}, err
	}
	start := Point{}
	if from := head - n; from > 0 {
		rs, err := s.Since(ctx, from-1, 1)
		if err != nil {
			return Report{}, err
		}
		if len(rs) == 0 || rs[0].Position != from {
			return Report{FirstBad: from, Reason: Missing, Detail: fmt.Sprintf("position %d is not there", from)}, nil
		}
		start = Point{from, rs[0].Hash}
	}
	return Verify(ctx, Records(ctx, s, start.Position, 0), start)
}

// A verifier holds what is known of the history so far.
type verifier struct {
	report   Report
	prev     []byte // hash of the last good row; empty before position 1
	versions map[events.Stream]int64
	whole    bool    // from position 1
	known    []Point // by position, those not reached yet
	certain  bool    // the reason that is reported needs no look at what follows

	// The newest row can still turn out to be a forgery, if the next one
	// names another as the one before it.
	tree   treeHead
	newest *tlog.Hash // leaf of the newest row, not in tree yet
	before Report     // without the newest row
}

func newVerifier(start Point, known []Point) (*verifier, error) {
	prev, err := hex.DecodeString(start.Hash)
	if err != nil || len(prev) != HashSize && start != (Point{}) {
		return nil, fmt.Errorf("verify: %q at position %d is no hash of a row", start.Hash, start.Position)
	}
	v := &verifier{report: Report{OK: true, Head: start}, prev: prev, versions: map[events.Stream]int64{}, whole: start == Point{}}
	for _, p := range known {
		if p.Position > start.Position {
			v.known = append(v.known, p)
		}
	}
	slices.SortFunc(v.known, func(a, b Point) int { return cmp.Compare(a.Position, b.Position) })
	return v, nil
}

// good takes r as the next row, or reports why not.
func (v *verifier) good(r *events.Record) bool {
	want := v.report.Head.Position + 1
	version, seen := v.versions[r.Stream]
	hash := Hash(v.prev, r)
	switch {
	case r.Position != want:
		v.bad(want, "", "position %d stands where %d should", r.Position, want)
	case hex.EncodeToString(hash[:]) != r.Hash && v.newest != nil && v.namesAnother(r):
		v.report, v.newest, v.certain = v.before, nil, true
		v.bad(want-1, Edited, "the row after it is whole and names another as the one before it")
	case hex.EncodeToString(hash[:]) != r.Hash:
		v.bad(want, Edited, "the hash is not that of the row before and this row's fields")
	case r.PrevHash != v.report.Head.Hash:
		v.bad(want, Edited, "the row names another as the one before it")
	case r.Version != version+1 && (v.whole || seen):
		v.bad(want, Edited, "%s has version %d after %d", r.Stream, r.Version, version)
	case v.contradicts(r):
		v.certain = true
		v.bad(want, Replaced, "the row is whole, but another hash of it was kept elsewhere")
	default:
		v.take(r, hash)
		return true
	}
	return false
}

// contradicts says whether a known point has another hash for r's position.
func (v *verifier) contradicts(r *events.Record) bool {
	for _, p := range v.known {
		if p.Position != r.Position {
			break
		}
		if p.Hash != r.Hash {
			return true
		}
	}
	return false
}

// namesAnother says whether r is what was hashed, after another row than the
// newest.
func (v *verifier) namesAnother(r *events.Record) bool {
	prev, err := hex.DecodeString(r.PrevHash)
	return err == nil && r.PrevHash != v.report.Head.Hash && fits(prev, r, r.Position)
}

func (v *verifier) take(r *events.Record, hash [HashSize]byte) {
	v.flush()
	v.before = v.report
	v.versions[r.Stream] = r.Version
	v.prev = hash[:]
	v.report.Events++
	v.report.Head = Point{r.Position, r.Hash}
	v.newest = new(tlog.RecordHash(hash[:]))
	for len(v.known) > 0 && v.known[0] == v.report.Head {
		v.known = v.known[1:]
	}
}

func (v *verifier) flush() {
	if v.newest != nil {
		v.tree.add(*v.newest)
		v.newest = nil
	}
}

func (v *verifier) bad(position int64, why Reason, format string, args ...any) {
	v.report.OK, v.report.FirstBad, v.report.Reason, v.report.Detail = false, position, why, fmt.Sprintf(format, args...)
	v.root()
}

// end says what is known to have been there and is not.
func (v *verifier) end() {
	v.root()
	if len(v.known) > 0 {
		last := v.known[len(v.known)-1]
		v.bad(v.report.Head.Position+1, Truncated, "the log ends at %d and is known to have had position %d", v.report.Head.Position, last.Position)
	}
}

func (v *verifier) root() {
	if v.whole {
		v.flush()
		h := v.tree.hash()
		v.report.Root = hex.EncodeToString(h[:])
	}
}

// lookAhead bounds how many rows after a bad one are looked at to say what
// happened to it.
const lookAhead = 1024

func ahead(next func() (events.Record, error, bool)) (rs []events.Record, err error) {
	for len(rs) < lookAhead {
		r, err, ok := next()
		if err != nil || !ok {
			return rs, err
		}
		rs = append(rs, r)
	}
	return rs, nil
}

// judge says what happened at the first bad position, from the bad row and
// those after it. A row that fits there when it is given that position is the
// row that was there.
func (v *verifier) judge(r *events.Record, after []events.Record) {
	want := v.report.Head.Position + 1
	if v.certain {
		return
	}
	right := slices.IndexFunc(after, func(a events.Record) bool { return fits(v.prev, &a, want) })
	switch {
	case right == 0 && v.extra(r, after, want):
		v.report.Reason = Inserted
	case right >= 0:
		v.report.Reason = Reordered
		v.report.Detail += fmt.Sprintf("; the row that belongs here comes %d later", right+1)
	case r.Position > want:
		v.report.Reason = Missing
	case r.Position < want:
		v.report.Reason = Inserted
	case shifted(r, after):
		v.report.Reason = Missing
		v.report.Detail += "; it and those after it were numbered anew"
	}
}

// extra says whether r was put in before the right row, which is the first of
// after: without it the next one follows too, and its own place is not empty.
func (v *verifier) extra(r *events.Record, after []events.Record, want int64) bool {
	hash := Hash(v.prev, at(&after[0], want))
	if len(after) == 1 {
		return !fits(hash[:], r, want+1)
	}
	if !fits(hash[:], &after[1], want+1) {
		return false
	}
	if slices.ContainsFunc(after, func(a events.Record) bool { return a.Position == r.Position }) {
		return true
	}
	return r.Position <= want || r.Position > after[len(after)-1].Position+1
}

// shifted says whether r and the row after it are whole rows of the next
// positions: then one was taken out before them and they were given its number.
func shifted(r *events.Record, after []events.Record) bool {
	prev, err := hex.DecodeString(r.PrevHash)
	if err == nil && fits(prev, r, r.Position+1) {
		return true
	}
	prev, err = hex.DecodeString(r.Hash)
	return err == nil && len(after) > 0 && fits(prev, &after[0], after[0].Position+1)
}

// fits says whether r, put at position, is what was hashed there after prev.
func fits(prev []byte, r *events.Record, position int64) bool {
	hash := Hash(prev, at(r, position))
	return hex.EncodeToString(hash[:]) == r.Hash
}

func at(r *events.Record, position int64) *events.Record {
	moved := *r
	moved.Position = position
	return &moved
}

// A treeHead is the head of a growing Merkle tree: the hashes of its complete
// subtrees, largest first, of which there are at most 63.
type treeHead struct {
	size  int64
	peaks []tlog.Hash
}

func (t *treeHead) add(leaf tlog.Hash) {
	for n := t.size; n&1 == 1; n >>= 1 {
		last := len(t.peaks) - 1
		leaf = tlog.NodeHash(t.peaks[last], leaf)
		t.peaks = t.peaks[:last]
	}
	t.peaks = append(t.peaks, leaf)
	t.size++
}

func (t *treeHead) hash() tlog.Hash {
	if t.size == 0 {
		h, _ := tlog.TreeHash(0, nil) // of no leaves it reads none and cannot fail
		return h
	}
	h := t.peaks[len(t.peaks)-1]
	for i := len(t.peaks) - 2; i >= 0; i-- {
		h = tlog.NodeHash(t.peaks[i], h)
	}
	return h
}

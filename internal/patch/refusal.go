package patch

import (
	"fmt"
	"slices"
	"strings"
)

// A Hint names the likely reason of a refusal in one stable word.
type Hint string

// The hints.
const (
	HintEOL        Hint = "eol"
	HintEOFNewline Hint = "eof_newline"
	HintWhitespace Hint = "whitespace_only_difference"
	HintHTML       Hint = "html_entities"
	HintConfusable Hint = "confusable_characters"
	HintUnicode    Hint = "unicode_variant"
	HintCase       Hint = "case_variant"
	HintBOM        Hint = "utf8_bom"
	HintUTF16      Hint = "utf16"
	HintANSI       Hint = "ansi_escapes"
	HintIndented   Hint = "indented"
	HintEscaped    Hint = "escaped_newlines"
	HintFence      Hint = "markdown_fence"
	HintCodex      Hint = "codex_apply_patch"
	HintContext    Hint = "context_diff"
	HintNormal     Hint = "normal_diff"
	HintEd         Hint = "ed_script"
	HintOverlap    Hint = "overlap"
)

// A HintInfo is one row of the table of hints.
type HintInfo struct {
	Hint   Hint
	Advice string
}

// Hints returns all hints, each with one sentence that says what to send instead.
func Hints() []HintInfo {
	return []HintInfo{
		{HintEOL, "Send the lines with the line ends that the file has as Git keeps it: LF where Git converts them, whatever the work tree shows."},
		{HintEOFNewline, "Say with `\\ No newline at end of file` which side lacks the last newline."},
		{HintWhitespace, "Send blanks and tabs exactly as the file has them."},
		{HintHTML, "Send the characters themselves, not HTML entities."},
		{HintConfusable, "Send plain quotes, dashes and blanks as the file has them."},
		{HintUnicode, "Use the Unicode form in which the name is stored."},
		{HintCase, "Use the upper and lower case of the name as it is stored."},
		{HintBOM, "Send the patch without a byte order mark."},
		{HintUTF16, "Send the patch as bytes or UTF-8, not UTF-16."},
		{HintANSI, "Make the patch without colour (`git diff --no-color`)."},
		{HintIndented, "Send the patch without the indentation."},
		{HintEscaped, "Send real newlines, not the two characters `\\n`."},
		{HintFence, "Send the diff alone, without prose and code fences."},
		{HintCodex, "Send a unified diff (`git diff`), not an apply_patch envelope."},
		{HintContext, "Send a unified diff (`git diff` or `diff -u`), not a context diff."},
		{HintNormal, "Send a unified diff (`git diff` or `diff -u`), not plain diff output."},
		{HintEd, "Send a unified diff (`git diff` or `diff -u`), not an ed script."},
		{HintOverlap, "Join the hunks that share lines into one."},
	}
}

func (h Hint) advice() string {
	for _, i := range Hints() {
		if i.Hint == h {
			return i.Advice
		}
	}
	return ""
}

// A Refusal says why a patch is not taken. It is the error of Parse, Resolve
// and Apply; any other error they return is a failure to read the tree.
type Refusal struct {
	Class  Class  `json:"class"`
	Detail string `json:"message"`        // for people; escaped
	Line   int    `json:"line,omitempty"` // 1-based line of the patch; 0 when it is about the whole input or tree
	Path   string `json:"path,omitempty"` // as Show gives it
	Hint   Hint   `json:"hint,omitempty"`
	// Suggestion is a repaired patch. It is offered to the sender and never
	// applied in the place of what was sent.
	Suggestion []byte `json:"suggestion,omitempty"`
	// All is every reason found, this one first. Nil when it is the only one.
	All []*Refusal `json:"all,omitempty"`
	// States tells for already_applied and partly_applied what each path is in.
	States []PathState `json:"states,omitempty"`
}

// A PathState says how one touched path stands to the patch.
type PathState struct {
	Path  string   `json:"path"` // as Show gives it
	State Standing `json:"state"`
}

// A Standing is how a section stands to the tree.
type Standing string

// The standings.
const (
	Applies   Standing = "applies"
	InTree    Standing = "already_applied"
	Conflicts Standing = "conflict"
)

// Error gives class, place and detail in one line without control characters.
func (r *Refusal) Error() string {
	var b strings.Builder
	b.WriteString(string(r.Class))
	if r.Line > 0 {
		fmt.Fprintf(&b, ": line %d", r.Line)
	}
	if r.Path != "" {
		fmt.Fprintf(&b, ": %s", r.Path)
	}
	b.WriteString(": " + r.Detail)
	if a := r.Hint.advice(); a != "" {
		b.WriteString(" " + a)
	}
	return b.String()
}

// with returns r with a hint.
func (r *Refusal) with(h Hint) *Refusal {
	r.Hint = h
	return r
}

// NotInWorkTree is the refusal of a path that git tracks and does not check
// out: only who knows the index can give it.
func NotInWorkTree(path string) *Refusal {
	return refuse(NotCheckedOut, 0, path, "Git tracks this file and its checkout leaves it out (skip-worktree). Bring it into the work tree first, with `git sparse-checkout add` and its folder or with `git update-index --no-skip-worktree`.")
}

func refuse(c Class, line int, path, format string, args ...any) *Refusal {
	return &Refusal{Class: c, Line: line, Path: Show(path), Detail: fmt.Sprintf(format, args...)}
}

// verdict makes one error of all reasons: the earliest check first, and within
// it the order of the patch. Nil when there is none.
func verdict(all []*Refusal) error {
	if len(all) == 0 {
		return nil
	}
	rank := func(r *Refusal) int {
		n := 2 * slices.Index([]Stage{StageParse, StagePaths, StageApply, StageReview}, r.Class.Stage())
		if strings.HasPrefix(string(r.Class), "symlink.") {
			n++ // where a link points matters once all names are good
		}
		return n
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b *Refusal) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return a.Line - b.Line
	})
	first := *all[0]
	if len(all) > 1 {
		first.All = all
	}
	return &first
}

package patch

import "strings"

// A Class says why a patch is refused. The strings are stable: programs and
// people branch on them.
type Class string

// The classes. Classes has what each means.
const (
	Empty             Class = "parse.empty"
	NotADiff          Class = "parse.not_a_diff"
	FormatUnsupported Class = "parse.format_unsupported"
	MalformedHeader   Class = "parse.malformed_header"
	MalformedHunk     Class = "parse.malformed_hunk"
	HunkCountMismatch Class = "parse.hunk_count_mismatch"
	HunkOrder         Class = "parse.hunk_order"
	Truncated         Class = "parse.truncated"
	UnaccountedText   Class = "parse.unaccounted_text"
	InconsistentNames Class = "parse.inconsistent_names"
	AmbiguousName     Class = "parse.ambiguous_name"
	BadQuoting        Class = "parse.bad_quoting"
	BadMode           Class = "parse.bad_mode"
	DuplicatePath     Class = "parse.duplicate_path"
	MultiplePatches   Class = "parse.multiple_patches"
	CombinedDiff      Class = "parse.combined_diff"
	DiffInMessage     Class = "parse.diff_in_message"
	DiffstatMismatch  Class = "parse.diffstat_mismatch"
	StripAmbiguous    Class = "parse.strip_ambiguous"
	StripMismatch     Class = "parse.strip_mismatch"
	BinaryWithoutData Class = "parse.binary_without_data"
	BinaryWithoutOID  Class = "parse.binary_without_oid"
	BinaryCorrupt     Class = "parse.binary_corrupt"
	LimitPatchBytes   Class = "limit.patch_bytes"
	LimitFiles        Class = "limit.files"
	LimitFileBytes    Class = "limit.file_bytes"

	PathAbsolute     Class = "path.absolute"
	PathTraversal    Class = "path.traversal"
	PathNotCanonical Class = "path.not_canonical"
	PathDotgit       Class = "path.dotgit"
	PathReserved     Class = "path.reserved"
	PathNUL          Class = "path.nul"
	PathControlChar  Class = "path.control_char"
	PathConfusable   Class = "path.confusable"
	PathNonportable  Class = "path.nonportable"
	PathTooLong      Class = "path.too_long"
	PathNotUTF8      Class = "path.not_utf8"

	SymlinkParent    Class = "path.symlink_parent"
	SpecialFile      Class = "path.special_file"
	DirConflict      Class = "path.dir_conflict"
	CaseCollision    Class = "path.case_collision"
	UnicodeCollision Class = "path.unicode_collision"
	SymlinkEscape    Class = "symlink.escape"
	SymlinkDotgit    Class = "symlink.dotgit"
	SymlinkBadTarget Class = "symlink.bad_target"
	Gitlink          Class = "mode.gitlink"

	MissingFile      Class = "apply.missing_file"
	Exists           Class = "apply.exists"
	ContextMismatch  Class = "apply.context_mismatch"
	EOLMismatch      Class = "apply.eol_mismatch"
	Ambiguous        Class = "apply.ambiguous"
	OffsetRefused    Class = "apply.offset"
	AlreadyApplied   Class = "apply.already_applied"
	PartlyApplied    Class = "apply.partly_applied"
	Noop             Class = "apply.noop"
	PreimageMismatch Class = "apply.preimage_mismatch"
	TypeMismatch     Class = "apply.type_mismatch"
	ModeMismatch     Class = "apply.mode_mismatch"
	AttrFilter       Class = "apply.attr_filter"
	NotCheckedOut    Class = "apply.not_checked_out"

	ReviewBidi          Class = "review.bidi"
	ReviewHiddenControl Class = "review.hidden_control"
)

// A Stage is the check of a validation that a class fails.
type Stage string

// The stages, in the order in which they judge.
const (
	StageParse  Stage = "patch_parse"
	StagePaths  Stage = "path_safety"
	StageApply  Stage = "temp_apply"
	StageReview Stage = "review"
)

// A ClassInfo is one row of the table of classes.
type ClassInfo struct {
	Class   Class
	Stage   Stage
	Meaning string
}

// Stage returns the check that the class fails, which its first word tells.
func (c Class) Stage() Stage {
	switch word, _, _ := strings.Cut(string(c), "."); word {
	case "parse", "limit":
		return StageParse
	case "path", "symlink", "mode":
		return StagePaths
	case "review":
		return StageReview
	default:
		return StageApply
	}
}

// Classes returns all classes that this package can answer, in the order of
// their checks, each with the check it fails and its meaning in one line.
func Classes() []ClassInfo {
	all := []ClassInfo{
		{Class: Empty, Meaning: "zero bytes"},
		{Class: NotADiff, Meaning: "no file header found"},
		{Class: FormatUnsupported, Meaning: "another diff format"},
		{Class: MalformedHeader, Meaning: "an extended header is broken, doubled, contradictory, or changes nothing"},
		{Class: MalformedHunk, Meaning: "broken hunk header, number too large, no changed line, no hunk"},
		{Class: HunkCountMismatch, Meaning: "the body does not have the counted lines"},
		{Class: HunkOrder, Meaning: "hunks overlap or go backwards"},
		{Class: Truncated, Meaning: "the input ends within a line, a hunk or binary data"},
		{Class: UnaccountedText, Meaning: "bytes that belong to nothing"},
		{Class: InconsistentNames, Meaning: "header lines name different files or kinds"},
		{Class: AmbiguousName, Meaning: "a `diff --git` line can be split in several ways"},
		{Class: BadQuoting, Meaning: "a quoted name outside git's grammar"},
		{Class: BadMode, Meaning: "a mode outside the closed list"},
		{Class: DuplicatePath, Meaning: "a path in two sections, other than a type change"},
		{Class: MultiplePatches, Meaning: "a second mail or commit"},
		{Class: CombinedDiff, Meaning: "`diff --cc`, `diff --combined`, `@@@`"},
		{Class: DiffInMessage, Meaning: "a diff starts in the commit message"},
		{Class: DiffstatMismatch, Meaning: "the stated diffstat is not the sections'"},
		{Class: StripAmbiguous, Meaning: "levels 0 and 1 both fit the tree"},
		{Class: StripMismatch, Meaning: "an explicit level takes away too much"},
		{Class: BinaryWithoutData, Meaning: "a `Binary files differ` stub"},
		{Class: BinaryWithoutOID, Meaning: "a binary section without both full object ids"},
		{Class: BinaryCorrupt, Meaning: "bad binary data, or a result that is not what the ids say"},
		{Class: LimitPatchBytes, Meaning: "the patch is larger than allowed"},
		{Class: LimitFiles, Meaning: "more sections than allowed"},
		{Class: LimitFileBytes, Meaning: "a file before or after, or all together, larger than allowed"},
		{Class: PathAbsolute, Meaning: "an absolute name, or one with a drive letter"},
		{Class: PathTraversal, Meaning: "a component `..`"},
		{Class: PathNotCanonical, Meaning: "an empty component, `.`, or a slash at the end"},
		{Class: PathDotgit, Meaning: "a name that some file system takes for `.git`, or `.gitmodules` as a symlink"},
		{Class: PathReserved, Meaning: "the service's own state directory"},
		{Class: PathNUL, Meaning: "a NUL byte"},
		{Class: PathControlChar, Meaning: "a byte below 0x20, or 0x7f"},
		{Class: PathConfusable, Meaning: "an invisible or bidirectional code point"},
		{Class: PathNonportable, Meaning: "a device name, or a dot or blank at the end of a component"},
		{Class: PathTooLong, Meaning: "too many bytes or components"},
		{Class: PathNotUTF8, Meaning: "not UTF-8, where the option asks for it"},
		{Class: SymlinkParent, Meaning: "a parent folder is a symlink, before or after"},
		{Class: SpecialFile, Meaning: "a FIFO, socket, device, gitlink or nested repository"},
		{Class: DirConflict, Meaning: "a file where a folder is needed, or the reverse"},
		{Class: CaseCollision, Meaning: "differs only in case from another name of the result"},
		{Class: UnicodeCollision, Meaning: "differs only in Unicode form from another name of the result"},
		{Class: SymlinkEscape, Meaning: "the target of a symlink leaves the tree"},
		{Class: SymlinkDotgit, Meaning: "the target of a symlink passes `.git`"},
		{Class: SymlinkBadTarget, Meaning: "an empty, unprintable, looping or forbidden symlink"},
		{Class: Gitlink, Meaning: "a submodule change (mode 160000)"},
		{Class: MissingFile, Meaning: "the old path is not there"},
		{Class: Exists, Meaning: "a created path is there"},
		{Class: ContextMismatch, Meaning: "old lines are not found"},
		{Class: EOLMismatch, Meaning: "old lines are found, but for line ends"},
		{Class: Ambiguous, Meaning: "old lines are found more than once, not at the stated line"},
		{Class: OffsetRefused, Meaning: "old lines are found elsewhere, and offsets are refused"},
		{Class: AlreadyApplied, Meaning: "all sections are in the tree already"},
		{Class: PartlyApplied, Meaning: "some sections are in the tree already"},
		{Class: Noop, Meaning: "the result is the tree as it is"},
		{Class: PreimageMismatch, Meaning: "the blob is not the one the patch names"},
		{Class: TypeMismatch, Meaning: "the kind is not the one stated"},
		{Class: ModeMismatch, Meaning: "the old mode is not the one stated"},
		{Class: AttrFilter, Meaning: "a filter, ident or encoding attribute stands on the path"},
		{Class: NotCheckedOut, Meaning: "a sparse checkout leaves the file out of the work tree"},
		{Class: ReviewBidi, Meaning: "bidirectional controls in added lines (a refusal only under strict text)"},
		{Class: ReviewHiddenControl, Meaning: "hidden control or invisible characters in added lines (a refusal only under strict text)"},
	}
	for i := range all {
		all[i].Stage = all[i].Class.Stage()
	}
	return all
}

package patch

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

// Classes returns all classes that this package can answer, in the order of
// the reference, each with the check it fails and its meaning in one line.
func Classes() []ClassInfo {
	return []ClassInfo{
		{Empty, StageParse, "zero bytes"},
		{NotADiff, StageParse, "no file header found"},
		{FormatUnsupported, StageParse, "another diff format"},
		{MalformedHeader, StageParse, "an extended header is broken, doubled, contradictory, or changes nothing"},
		{MalformedHunk, StageParse, "broken hunk header, number too large, no changed line, no hunk"},
		{HunkCountMismatch, StageParse, "the body does not have the counted lines"},
		{HunkOrder, StageParse, "hunks overlap or go backwards"},
		{Truncated, StageParse, "the input ends within a line, a hunk or binary data"},
		{UnaccountedText, StageParse, "bytes that belong to nothing"},
		{InconsistentNames, StageParse, "header lines name different files or kinds"},
		{AmbiguousName, StageParse, "a `diff --git` line can be split in several ways"},
		{BadQuoting, StageParse, "a quoted name outside git's grammar"},
		{BadMode, StageParse, "a mode outside the closed list"},
		{DuplicatePath, StageParse, "a path in two sections, other than a type change"},
		{MultiplePatches, StageParse, "a second mail or commit"},
		{CombinedDiff, StageParse, "`diff --cc`, `diff --combined`, `@@@`"},
		{DiffInMessage, StageParse, "a diff starts in the commit message"},
		{DiffstatMismatch, StageParse, "the stated diffstat is not the sections'"},
		{StripAmbiguous, StageParse, "levels 0 and 1 both fit the tree"},
		{StripMismatch, StageParse, "an explicit level takes away too much"},
		{BinaryWithoutData, StageParse, "a `Binary files differ` stub"},
		{BinaryWithoutOID, StageParse, "a binary section without both full object ids"},
		{BinaryCorrupt, StageParse, "bad binary data, or a result that is not what the ids say"},
		{LimitPatchBytes, StageParse, "the patch is larger than allowed"},
		{LimitFiles, StageParse, "more sections than allowed"},
		{LimitFileBytes, StageParse, "a file before or after, or all together, larger than allowed"},

		{PathAbsolute, StagePaths, "an absolute name, or one with a drive letter"},
		{PathTraversal, StagePaths, "a component `..`"},
		{PathNotCanonical, StagePaths, "an empty component, `.`, or a slash at the end"},
		{PathDotgit, StagePaths, "a name that some file system takes for `.git`, or `.gitmodules` as a symlink"},
		{PathReserved, StagePaths, "the service's own state directory"},
		{PathNUL, StagePaths, "a NUL byte"},
		{PathControlChar, StagePaths, "a byte below 0x20, or 0x7f"},
		{PathConfusable, StagePaths, "an invisible or bidirectional code point"},
		{PathNonportable, StagePaths, "a device name, or a dot or blank at the end of a component"},
		{PathTooLong, StagePaths, "too many bytes or components"},
		{PathNotUTF8, StagePaths, "not UTF-8, where the option asks for it"},

		{SymlinkParent, StagePaths, "a parent folder is a symlink, before or after"},
		{SpecialFile, StagePaths, "a FIFO, socket, device, gitlink or nested repository"},
		{DirConflict, StagePaths, "a file where a folder is needed, or the reverse"},
		{CaseCollision, StagePaths, "differs only in case from another name of the result"},
		{UnicodeCollision, StagePaths, "differs only in Unicode form from another name of the result"},
		{SymlinkEscape, StagePaths, "the target of a symlink leaves the tree"},
		{SymlinkDotgit, StagePaths, "the target of a symlink passes `.git`"},
		{SymlinkBadTarget, StagePaths, "an empty, unprintable, looping or forbidden symlink"},
		{Gitlink, StagePaths, "a submodule change (mode 160000)"},

		{MissingFile, StageApply, "the old path is not there"},
		{Exists, StageApply, "a created path is there"},
		{ContextMismatch, StageApply, "old lines are not found"},
		{EOLMismatch, StageApply, "old lines are found, but for line ends"},
		{Ambiguous, StageApply, "old lines are found more than once, not at the stated line"},
		{OffsetRefused, StageApply, "old lines are found elsewhere, and offsets are refused"},
		{AlreadyApplied, StageApply, "all sections are in the tree already"},
		{PartlyApplied, StageApply, "some sections are in the tree already"},
		{Noop, StageApply, "the result is the tree as it is"},
		{PreimageMismatch, StageApply, "the blob is not the one the patch names"},
		{TypeMismatch, StageApply, "the kind is not the one stated"},
		{ModeMismatch, StageApply, "the old mode is not the one stated"},
		{AttrFilter, StageApply, "a filter, ident or encoding attribute stands on the path"},

		{ReviewBidi, StageReview, "bidirectional controls in added lines (a refusal only under strict text)"},
		{ReviewHiddenControl, StageReview, "hidden control or invisible characters in added lines (a refusal only under strict text)"},
	}
}

// Stage returns the check that the class fails.
func (c Class) Stage() Stage {
	for _, i := range Classes() {
		if i.Class == c {
			return i.Stage
		}
	}
	return ""
}

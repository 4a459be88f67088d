package patch

import (
	"strings"
	"unicode/utf8"
)

// CheckPath judges a path by its spelling alone: nil, or why no patch and no
// resource may name it. A path that passes is relative, slash separated, clean
// and inside the tree on every file system we know of, and names neither Git's
// nor the service's own folder.
func CheckPath(path string, o Options) *Refusal {
	if c, detail := judgePath(path, o); c != "" {
		return refuse(c, 0, path, "%s", detail)
	}
	return nil
}

// judgePath applies the rules in a fixed order, so that the same name always
// has the same class.
func judgePath(path string, o Options) (Class, string) {
	comps := strings.Split(path, "/")
	any := func(f func(string) bool) bool {
		for _, c := range comps {
			if f(c) {
				return true
			}
		}
		return false
	}
	switch {
	case strings.IndexByte(path, 0) >= 0:
		return PathNUL, "the name has a NUL byte"
	case strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\`) || driveLetter(path):
		return PathAbsolute, "the name is absolute"
	case any(func(c string) bool { return anyPiece(c, func(p string) bool { return p == ".." }) }):
		return PathTraversal, "the name has a component \"..\""
	case any(isDotgit):
		return PathDotgit, "a component is, or is taken by some file system for, .git"
	case o.GitDir != "" && (path == o.GitDir || strings.HasPrefix(path, o.GitDir+"/")):
		return PathDotgit, "the name lies in the repository's Git folder"
	case isStateDir(comps[0]):
		return PathReserved, stateDir + " belongs to the service"
	case strings.IndexFunc(path, func(r rune) bool { return r < 0x20 || r == 0x7f }) >= 0:
		return PathControlChar, "the name has a control character"
	case len(path) > maxPath || len(comps) > maxDepth || any(func(c string) bool { return len(c) > maxName }):
		return PathTooLong, "the name has more than 1,024 bytes, 64 components, or 255 bytes in one"
	case any(func(c string) bool { return c == "" || c == "." }):
		return PathNotCanonical, "the name has an empty component, a \".\", or a slash at its end"
	case strings.IndexFunc(path, ignorable) >= 0:
		return PathConfusable, "the name has an invisible or bidirectional character"
	case o.UTF8Names && !utf8.ValidString(path):
		return PathNotUTF8, "the name is not UTF-8"
	case !o.AnyNames && any(nonportable):
		return PathNonportable, "a component is a device name on some systems, or ends in a dot or blank"
	}
	return "", ""
}

func driveLetter(p string) bool {
	return len(p) >= 2 && p[1] == ':' && ('a' <= p[0]|0x20 && p[0]|0x20 <= 'z')
}

// anyPiece tests a component and, since some systems take the backslash for a
// separator, each of its pieces.
func anyPiece(c string, f func(string) bool) bool {
	for _, p := range strings.Split(c, `\`) {
		if f(p) {
			return true
		}
	}
	return false
}

// isDotgit reports whether some file system takes the component, or a piece of
// it between backslashes, for .git.
func isDotgit(c string) bool {
	return anyPiece(c, func(p string) bool {
		f := foldName(p)
		return f == ".git" || f == "git~1"
	})
}

// isGitmodules reports whether some file system takes the name for .gitmodules.
func isGitmodules(name string) bool {
	return anyPiece(name, func(p string) bool {
		f := foldName(p)
		return f == ".gitmodules" || strings.HasPrefix(f, "gitmod~") || strings.HasPrefix(f, "gi7eba~")
	})
}

// isStateDir reports whether the first component names the state directory,
// in any spelling that a file system may fold to it.
func isStateDir(c string) bool { return foldName(strings.Split(c, `\`)[0]) == stateDir }

// IsStateFolder reports whether a name at the root is taken for the state
// folder, in any spelling that a file system may fold to it.
func IsStateFolder(name string) bool { return isStateDir(name) }

// foldName drops what HFS+ ignores, cuts at a colon (NTFS streams) and drops
// dots and blanks at the end (Windows), in lower case.
func foldName(p string) string {
	if p == "" {
		return ""
	}
	p = strings.Map(func(r rune) rune {
		if 0x200c <= r && r <= 0x200f || 0x202a <= r && r <= 0x202e || 0x206a <= r && r <= 0x206f || r == 0xfeff {
			return -1
		}
		return r
	}, p)
	p, _, _ = strings.Cut(p, ":")
	return strings.ToLower(strings.TrimRight(p, ". "))
}

// ignorable: not seen, or changing the order in which what is around it is seen.
func ignorable(r rune) bool {
	return 0x200b <= r && r <= 0x200f || 0x202a <= r && r <= 0x202e || 0x2060 <= r && r <= 0x206f || r == 0xfeff
}

// nonportable reports whether Windows would refuse the component or take it
// for a device.
func nonportable(c string) bool {
	if strings.HasSuffix(c, ".") || strings.HasSuffix(c, " ") {
		return true
	}
	base := strings.ToLower(c)
	if i := strings.IndexAny(base, ".:"); i >= 0 {
		base = base[:i]
	}
	base = strings.TrimRight(base, " ")
	switch base {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	digit, port := strings.CutPrefix(base, "com")
	if !port {
		digit, port = strings.CutPrefix(base, "lpt")
	}
	return port && (len(digit) == 1 && '0' <= digit[0] && digit[0] <= '9' || digit == "¹" || digit == "²" || digit == "³")
}

package patch

import (
	"bytes"
	"strings"
)

// judgeLink walks the target of a new or changed symlink through the tree
// after, one component at a time: cleaning its spelling is not enough.
func (a *applier) judgeLink(i int) error {
	c, p := a.sections[i], &a.parts[i]
	path := a.names[i][1]
	if p.after.Kind != Symlink || p.content == nil {
		return nil
	}
	if c.from == nil && p.after == p.before {
		return nil
	}
	class, detail, err := a.walk(path, p.content)
	if class != "" {
		a.refuse(i, class, c.firstLine(), path, "%s", detail)
	}
	return err
}

func (a *applier) walk(path string, target []byte) (class Class, detail string, err error) {
	if class, detail := judgeTarget(target, a.o); class != "" {
		return class, detail, nil
	}
	at, todo, hops := splitPath(dirOf(path)), strings.Split(string(target), "/"), 1
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		switch {
		case name == "" || name == ".":
			continue
		case name == "..":
			if len(at) == 0 {
				return SymlinkEscape, "the target leaves the tree", nil
			}
			at = at[:len(at)-1]
			continue
		case isDotgit(name):
			return SymlinkDotgit, "the target passes .git", nil
		case len(at) == 0 && isStateDir(name):
			return PathReserved, "the target passes " + stateDir + ", which belongs to the service", nil
		}
		at = append(at[:len(at):len(at)], name)
		here := strings.Join(at, "/")
		st, err := a.after.Stat(here)
		if err != nil {
			return "", "", err
		}
		if st.Kind != Symlink {
			continue
		}
		if hops++; hops > maxHops {
			return SymlinkBadTarget, "the target passes more than 16 symlinks", nil
		}
		text, err := a.after.Read(here)
		if err != nil {
			return "", "", err
		}
		if bytes.HasPrefix(text, []byte("/")) {
			return SymlinkEscape, "the target passes " + Show(here) + ", a link to an absolute name", nil
		}
		at, todo = at[:len(at)-1], append(strings.Split(string(text), "/"), todo...)
	}
	return "", "", nil
}

// judgeTarget judges the text of a link by its spelling.
func judgeTarget(target []byte, o Options) (Class, string) {
	switch {
	case o.NoSymlinks:
		return SymlinkBadTarget, "symlinks are not allowed here"
	case len(target) == 0:
		return SymlinkBadTarget, "the target is empty"
	case bytes.ContainsAny(target, "\x00\n"):
		return SymlinkBadTarget, "the target has a NUL byte or a newline"
	case len(target) > maxTarget:
		return SymlinkBadTarget, "the target has more than 4,095 bytes"
	case target[0] == '/' || driveLetter(string(target)):
		return SymlinkEscape, "the target is an absolute name"
	}
	return "", ""
}

func splitPath(p string) []string {
	if p == "" {
		return nil
	}
	return strings.Split(p, "/")
}

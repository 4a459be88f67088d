package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"roundtable/internal/patch"
)

// A sample is a generated repository: the same number of files gives the same
// bytes, ids and commit on every machine.
type sample struct {
	root       string
	files      int
	attributes string // of .gitattributes; none if empty
}

// sampleLines is how many lines a generated file has, about 5 KB of them.
const sampleLines = 100

// name returns the path of file i: a hundred files in a folder, ten folders in
// the one above.
func (s sample) name(i int) string {
	return fmt.Sprintf("part%03d/unit%d/module_%06d.txt", i/1000, i/100%10, i)
}

// content returns the bytes of file i: lines of words that a seed of its own
// gives.
func (s sample) content(i int) []byte {
	rnd := rand.New(rand.NewPCG(uint64(i), 1))
	var b bytes.Buffer
	for line := range sampleLines {
		fmt.Fprintf(&b, "%03d", line)
		for range 6 {
			fmt.Fprintf(&b, " %07x", rnd.Uint32()&0xfffffff)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// generate makes a repository of n files in dir, one commit of all of them in
// one pack, checked out.
func generate(ctx context.Context, dir string, n int, attributes string) (sample, error) {
	s := sample{root: filepath.Join(dir, fmt.Sprintf("repository-%d", n)), files: n, attributes: attributes}
	if err := os.Mkdir(s.root, 0o755); err != nil {
		return s, err
	}
	if _, err := s.git(ctx, nil, "init", "-q"); err != nil {
		return s, err
	}
	stream, into := io.Pipe()
	go func() { into.CloseWithError(s.stream(into)) }()
	if err := s.run(ctx, stream, nil, "-c", "core.compression=1", "fast-import", "--quiet"); err != nil {
		return s, errors.Join(err, stream.Close())
	}
	_, err := s.git(ctx, nil, "-c", "checkout.workers=0", "reset", "-q", "--hard")
	return s, err
}

// stream writes the repository as git fast-import reads it.
func (s sample) stream(w io.Writer) error {
	b := bufio.NewWriter(w)
	const who = "Bench <bench@example.org> 1700000000 +0000"
	fmt.Fprintf(b, "commit refs/heads/main\nauthor %s\ncommitter %s\ndata 5\nfirst\n", who, who)
	if s.attributes != "" {
		fmt.Fprintf(b, "M 100644 inline .gitattributes\ndata %d\n%s\n", len(s.attributes)+1, s.attributes+"\n")
	}
	for i := range s.files {
		c := s.content(i)
		fmt.Fprintf(b, "M 100644 inline %s\ndata %d\n%s\n", s.name(i), len(c), c)
	}
	fmt.Fprint(b, "done\n")
	return b.Flush()
}

// images returns what a patch of n files, spread over the repository, is made
// of: two lines change in each, far enough apart for two hunks.
func (s sample) images(n int) (images []patch.Image) {
	for k := range n {
		i := k * s.files / n
		old := s.content(i)
		lines := bytes.SplitAfter(old, []byte("\n"))
		for _, at := range []int{sampleLines / 5, sampleLines * 4 / 5} {
			lines[at] = fmt.Appendf(nil, "%03d changed by a patch of %d files\n", at, n)
		}
		now := bytes.Join(lines, nil)
		images = append(images, patch.Image{Path: s.name(i), Before: fileState(old), After: fileState(now), Old: old, New: now})
	}
	return images
}

func fileState(data []byte) patch.State {
	sum := sha256.Sum256(data)
	return patch.State{Kind: patch.File, Mode: "100644", SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}
}

// reversed swaps the sides of images.
func reversed(images []patch.Image) []patch.Image {
	back := slices.Clone(images)
	for i, m := range images {
		back[i].Before, back[i].After, back[i].Old, back[i].New = m.After, m.Before, m.New, m.Old
	}
	return back
}

// git runs git in the repository without anybody's configuration.
func (s sample) git(ctx context.Context, env []string, args ...string) (string, error) {
	var out bytes.Buffer
	err := s.run(ctx, nil, &out, append(slices.Clone(env), args...)...)
	return strings.TrimSpace(out.String()), err
}

// run is git with a standard input. Arguments before the first that is no
// assignment go into the environment.
func (s sample) run(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=gc.auto", "GIT_CONFIG_VALUE_0=0", "GIT_CONFIG_KEY_1=init.defaultBranch", "GIT_CONFIG_VALUE_1=main"}
	for len(args) > 0 && strings.HasPrefix(args[0], "GIT_") {
		env, args = append(env, args[0]), args[1:]
	}
	cmd := exec.CommandContext(ctx, "git", args...)
	var errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.root, env, in, out, &errs
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(errs.Bytes()))
	}
	return nil
}

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

func nothing(context.Context) error { return nil }

// contenders returns what is measured on the repository with a patch of n
// files, git apply --check first: the measure of the others.
func (l *lab) contenders(ctx context.Context, dir string, n int) ([]job, error) {
	images := l.images(n)
	data, err := patch.Format(images, false)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, fmt.Sprintf("patch-%d-%d", l.files, n))
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return nil, err
	}
	git := func(args ...string) func(context.Context) error {
		return func(ctx context.Context) error { _, err := l.git(ctx, nil, args...); return err }
	}
	refresh := func(ctx context.Context) error {
		_, err := l.git(ctx, nil, "update-index", "-q", "--refresh")
		return err
	}
	return []job{
		{"git apply --check", l, nothing, git("apply", "--check", file), nothing, true},
		{"git apply --check --index", l, refresh, git("apply", "--check", "--index", file), nothing, true},
		{"git, own index: apply --cached, write-tree", l, nothing, l.gitTree(dir, file), nothing, false},
		{"git apply --index (not durable)", l, refresh, git("apply", "--index", file), git("apply", "--index", "-R", file), false},
		{"validate", l, l.settled(l.inspect(data)), l.inspect(data), nothing, true},
		{"validate, the index just rewritten", l, l.rewriteIndex, l.inspect(data), nothing, true},
		{"validate and id of the candidate tree", l, nothing, l.candidate(data), nothing, false},
		{"durable apply", l, nothing, l.apply(images), l.apply(reversed(images)), false},
	}, nil
}

// gitTree has git make the id of the tree after the patch in an index of its
// own.
func (l *lab) gitTree(dir, file string) func(context.Context) error {
	return func(ctx context.Context) error {
		index, err := os.ReadFile(filepath.Join(l.root, ".git", "index"))
		if err != nil {
			return err
		}
		own := filepath.Join(dir, "index")
		if err := os.WriteFile(own, index, 0o600); err != nil {
			return err
		}
		env := []string{"GIT_INDEX_FILE=" + own}
		if _, err := l.git(ctx, env, "apply", "--cached", file); err != nil {
			return err
		}
		_, err = l.git(ctx, env, "write-tree")
		return err
	}
}

// inspect judges the patch as the service does.
func (l *lab) inspect(data []byte) func(context.Context) error {
	return func(ctx context.Context) error {
		in, err := l.world.Inspect(ctx, l.root, data)
		if err == nil && in.Refused != nil {
			err = in.Refused
		}
		return err
	}
}

// settled waits until the index has not been changed for a moment, as it has
// not between most commands, and judges the patch once.
func (l *lab) settled(once func(context.Context) error) func(context.Context) error {
	const moment = 200 * time.Millisecond
	return func(ctx context.Context) error {
		info, err := os.Stat(filepath.Join(l.root, ".git", "index"))
		if err != nil {
			return err
		}
		if age := time.Since(info.ModTime()); age < moment {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(moment - age):
			}
		}
		return once(ctx)
	}
}

// rewriteIndex has git write the index anew, as every command of it does that
// changes something.
func (l *lab) rewriteIndex(ctx context.Context) error {
	l.touched = l.touched.Add(time.Second)
	if err := os.Chtimes(filepath.Join(l.root, l.name(0)), l.touched, l.touched); err != nil {
		return err
	}
	_, err := l.git(ctx, nil, "update-index", "-q", "--refresh")
	return err
}

func (l *lab) candidate(data []byte) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := l.world.Tree(ctx, l.root, data)
		return err
	}
}

// apply changes the work tree as a transaction does, and finishes it.
func (l *lab) apply(images []patch.Image) func(context.Context) error {
	plan := repo.Plan{Changes: changes(images)}
	return func(ctx context.Context) error {
		l.tx++
		tx := fmt.Sprintf("TX-%d", l.tx)
		if _, err := l.space.Apply(ctx, tx, 1, plan); err != nil {
			return err
		}
		return l.space.Finish(ctx, tx, 1)
	}
}

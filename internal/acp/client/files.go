package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"roundtable/internal/acp"
)

// maxFile is the longest file that is read, in bytes: it must fit a frame.
const maxFile = 16 << 20

// inside opens the root, and is the path within it.
func (c *Client) inside(path string) (*os.Root, string, error) {
	if !filepath.IsAbs(path) {
		return nil, "", acp.InvalidParams("the path `%s` is not absolute", path)
	}
	rel, err := filepath.Rel(c.cfg.Root, path)
	if err != nil || !filepath.IsLocal(rel) { // an agent may know the folder by its real name
		if real, e := filepath.EvalSymlinks(c.cfg.Root); e == nil {
			rel, err = filepath.Rel(real, path)
		}
	}
	if err != nil || !filepath.IsLocal(rel) {
		return nil, "", acp.InvalidParams("the path `%s` is outside of `%s`", path, c.cfg.Root)
	}
	root, err := os.OpenRoot(c.cfg.Root)
	return root, rel, err
}

func fileError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return acp.NewError(acp.CodeNotFound, map[string]string{"path": path})
	}
	return acp.NewError(acp.CodeInternal, err.Error())
}

func (c *Client) readFile(_ context.Context, raw json.RawMessage) (any, error) {
	p, err := params[struct {
		Path  string          `json:"path"`
		Line  json.RawMessage `json:"line"`
		Limit json.RawMessage `json:"limit"`
	}](raw, "sessionId", "path")
	if err != nil {
		return nil, err
	}
	root, rel, err := c.inside(p.Path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a FIFO would wait for its other end
	if err != nil {
		return nil, fileError(p.Path, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, acp.InvalidParams("`%s` is no regular file", p.Path)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fileError(p.Path, err)
	}
	if len(content) > maxFile {
		return nil, acp.InvalidParams("`%s` has more than %d bytes", p.Path, maxFile)
	}
	text := strings.ToValidUTF8(string(content), "\uFFFD")
	return map[string]string{"content": lines(text, number(p.Line, 1), number(p.Limit, -1))}, nil
}

// number reads an optional number; what is malformed counts as absent.
func number(raw json.RawMessage, or int) int {
	var n *uint32
	if json.Unmarshal(raw, &n) != nil || n == nil {
		return or
	}
	return int(*n)
}

// lines are limit lines of text from the given one, which counts from 1; a
// negative limit means all.
func lines(text string, from, limit int) string {
	all := strings.SplitAfter(text, "\n")
	from = min(max(from, 1)-1, len(all))
	all = all[from:]
	if limit >= 0 && limit < len(all) {
		all = all[:limit]
	}
	return strings.Join(all, "")
}

func (c *Client) writeFile(_ context.Context, raw json.RawMessage) (any, error) {
	p, err := params[struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}](raw, "sessionId", "path", "content")
	if err != nil {
		return nil, err
	}
	root, rel, err := c.inside(p.Path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return nil, fileError(p.Path, err)
	}
	f, err := root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|syscall.O_NONBLOCK, 0o644)
	if errors.Is(err, syscall.ENXIO) {
		return nil, acp.InvalidParams("`%s` is no regular file", p.Path)
	}
	if err != nil {
		return nil, fileError(p.Path, err)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(acp.InvalidParams("`%s` is no regular file", p.Path), f.Close())
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteString(p.Content)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fileError(p.Path, err)
	}
	return object{}, nil
}

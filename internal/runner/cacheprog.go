package runner

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"roundtable/internal/sandbox"
)

// Where no overlay can be made, this program, run again inside the sandbox,
// is the go command's cache (GOCACHEPROG, from Go 1.24; older ones ignore it
// and begin with an empty cache): it reads the host's cache, and writes to one
// of the run. Both are laid out as the go command lays out its own.
const (
	cacheProgVar = "GOCACHEPROG"
	cacheArg     = "roundtable-gocache"
)

// Main does the work of this program when it was started by this package or by
// sandbox, and reports that it did and the status to exit with. The program's
// main, and TestMain of a test that runs commands, must call it first.
func Main(args []string) (status int, handled bool) {
	if len(args) != 4 || args[1] != cacheArg {
		return sandbox.Main(args)
	}
	if err := (buildCache{lower: args[2], own: args[3]}).serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "go build cache:", err)
		return 1, true
	}
	return 0, true
}

// A buildCache is a cache of the go command's over another that it never
// changes.
type buildCache struct{ lower, own string }

// The messages, as cmd/go/internal/cacheprog defines them.
type (
	cacheRequest struct {
		ID                 int64
		Command            string
		ActionID, OutputID []byte
		BodySize           int64
	}
	cacheResponse struct {
		ID            int64
		Err           string     `json:",omitempty"`
		KnownCommands []string   `json:",omitempty"`
		Miss          bool       `json:",omitempty"`
		OutputID      []byte     `json:",omitempty"`
		Size          int64      `json:",omitempty"`
		Time          *time.Time `json:",omitempty"`
		DiskPath      string     `json:",omitempty"`
	}
)

// serve answers requests, one after the other, until told to close or in ends.
func (c buildCache) serve(in io.Reader, out io.Writer) error {
	to := bufio.NewWriter(out)
	answers, requests := json.NewEncoder(to), json.NewDecoder(bufio.NewReader(in))
	res := cacheResponse{KnownCommands: []string{"get", "put", "close"}}
	for last := ""; ; {
		if err := errors.Join(answers.Encode(res), to.Flush()); err != nil || last == "close" {
			return err
		}
		var req cacheRequest
		if err := requests.Decode(&req); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		var body []byte
		if req.BodySize > 0 {
			if err := requests.Decode(&body); err != nil {
				return err
			}
		}
		var err error
		switch last = req.Command; last {
		case "get":
			res = c.get(req)
		case "put":
			res, err = c.put(req, body)
		case "close":
			res = cacheResponse{}
		default:
			err = fmt.Errorf("unknown command %q", req.Command)
		}
		if err != nil {
			res = cacheResponse{Err: err.Error()}
		}
		res.ID = req.ID
	}
}

// get finds an output. What is not whole is not there.
func (c buildCache) get(req cacheRequest) cacheResponse {
	for _, dir := range []string{c.own, c.lower} {
		text, err := os.ReadFile(entry(dir, req.ActionID, "a"))
		if err != nil {
			continue
		}
		var action, output []byte
		var size, nanos int64
		if _, err := fmt.Sscanf(string(text), "v1 %x %x %d %d\n", &action, &output, &size, &nanos); err != nil {
			continue
		}
		path := entry(dir, output, "d")
		if fi, err := os.Stat(path); err != nil || fi.Size() != size || string(action) != string(req.ActionID) {
			continue
		}
		return cacheResponse{OutputID: output, Size: size, Time: new(time.Unix(0, nanos)), DiskPath: path}
	}
	return cacheResponse{Miss: true}
}

// put keeps an output: first its bytes, then the entry that names them.
func (c buildCache) put(req cacheRequest, body []byte) (cacheResponse, error) {
	if len(req.ActionID) == 0 || len(req.OutputID) == 0 || int64(len(body)) != req.BodySize {
		return cacheResponse{}, fmt.Errorf("put: %d bytes of %d for action %x, output %x", len(body), req.BodySize, req.ActionID, req.OutputID)
	}
	path := entry(c.own, req.OutputID, "d")
	// The go command takes entries of any time, and this one lives for one run.
	text := fmt.Sprintf("v1 %x %x %20d %20d\n", req.ActionID, req.OutputID, req.BodySize, 1)
	err := replace(path, body)
	if err == nil {
		err = replace(entry(c.own, req.ActionID, "a"), []byte(text))
	}
	return cacheResponse{DiskPath: path}, err
}

// entry returns the file of an id.
func entry(dir string, id []byte, kind string) string {
	name := hex.EncodeToString(id)
	return filepath.Join(dir, name[:min(2, len(name))], name+"-"+kind)
}

// replace writes a file that others, who write the same, see whole or not.
func replace(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"roundtable/api"
	"roundtable/internal/fault"
	"roundtable/internal/wire"
)

// testLog serves the kept output of a test run as text, with ranges.
func (a *app) testLog(w http.ResponseWriter, r *http.Request, q api.Request) error {
	var in struct {
		TestRun string `json:"test_run_id"`
	}
	if err := json.Unmarshal(q.In, &in); err != nil {
		return err
	}
	v, _, err := a.reader.Show(r.Context(), "test_run", q.Workspace, in.TestRun, q.After)
	if err != nil {
		return err
	}
	t, ok := v.(wire.TestRun)
	switch {
	case !ok || t.EndedAt == nil:
		return fault.Errorf(fault.Conflict, "test_run_not_ended", "test run %s has not ended: its log is kept when it has", in.TestRun)
	case t.LogDigest == "":
		http.ServeContent(w, r, "", *t.EndedAt, bytes.NewReader(nil))
		return nil
	}
	b, err := a.world.Kept(r.Context(), t.LogDigest)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("ETag", `"`+t.LogDigest+`"`)
	http.ServeContent(w, r, "", t.EndedAt.Truncate(time.Second), bytes.NewReader(b))
	return nil
}

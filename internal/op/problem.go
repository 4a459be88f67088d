package op

import (
	"errors"

	"roundtable/internal/fault"
)

// Problem is what a client is told about an error, the same object over every
// transport: kind, code, detail, errors, next, request_id and the fault's own
// facts for programs. Of an error that is no fault nothing is told but the id
// under which the operator finds it.
func Problem(err error, request string) map[string]any {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind == fault.Internal {
		f = fault.Errorf(fault.Internal, "internal", "something failed inside the service; its operator finds it in the log under request %s", request)
	}
	fields, next := f.Fields, f.Next
	if fields == nil {
		fields = []fault.Field{}
	}
	if next == nil {
		next = []fault.Step{}
	}
	p := map[string]any{}
	for k, v := range f.Context {
		p[k] = v
	}
	p["kind"], p["code"], p["detail"] = f.Kind, f.Code, f.Detail
	p["errors"], p["next"], p["request_id"] = fields, next, request
	return p
}

package testy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"roundtable/internal/acp"
	v1 "roundtable/internal/acp/v1"
)

// elicitations asks for input in every mode and scope (block E).
func (t *turn) elicitations() (lines []string, err error) {
	if t.cancelled() {
		return []string{"elicitations: cancelled"}, nil
	}
	t.mu.Lock()
	offered := t.client.Elicitation
	t.mu.Unlock()
	if offered == nil || offered.Form == nil {
		return nil, acp.InvalidParams("client does not support form elicitation")
	}
	for _, ask := range []struct {
		label   string
		request func() v1.CreateElicitationRequest
	}{
		{"elicitation/form_session_accept", t.formAccept},
		{"elicitation/form_session_decline", t.formDecline},
		{"elicitation/form_request_cancel", t.formCancel},
		{"", nil},
		{"elicitation/url_session_accept", t.urlAccept},
		{"elicitation/url_request_decline", t.urlDecline},
	} {
		if ask.request == nil {
			if offered.URL == nil {
				return nil, acp.InvalidParams("client does not support URL elicitation")
			}
			continue
		}
		lines = append(lines, t.elicit(ask.label, ask.request()))
		if t.cancelled() {
			return append(lines, "elicitations: cancelled"), nil
		}
		if ask.label == "elicitation/url_session_accept" {
			done := v1.CompleteElicitationNotification{ElicitationID: "testy-url-session"}
			if err := t.conn.Notify(v1.MethodElicitationComplete, done); err != nil {
				t.log.Warn("completion not sent", "error", err)
			}
			lines = append(lines, "elicitation/complete_session_url: sent")
		}
	}
	return append(lines, "elicitations: completed"), nil
}

// elicit asks and reports the action that was taken.
func (t *turn) elicit(label string, request v1.CreateElicitationRequest) string {
	result, err := t.conn.Call(t.ctx, v1.MethodElicitationCreate, request)
	if errors.Is(err, acp.ErrClosed) {
		t.ended = true
	}
	if err != nil {
		return errorLine(label, err)
	}
	var r struct {
		Action  string                     `json:"action"`
		Content map[string]json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return errorLine(label, acp.NewError(acp.CodeInvalidParams, nil))
	}
	switch r.Action {
	case "accept":
		return fmt.Sprintf("%s: ok accept content_fields=%d", label, len(r.Content))
	case "decline", "cancel":
		return label + ": ok " + r.Action
	}
	return label + ": ok unknown"
}

func (t *turn) formAccept() v1.CreateElicitationRequest {
	str := func(p v1.StringPropertySchema) v1.ElicitationPropertySchema {
		return v1.ElicitationPropertySchema{Kind: "string", String: &p}
	}
	field := func(name string, p v1.ElicitationPropertySchema) acp.Member[v1.ElicitationPropertySchema] {
		return acp.Member[v1.ElicitationPropertySchema]{Name: name, Value: p}
	}
	return t.form("session", &v1.ElicitationSchema{
		Title:       new("Testy elicitation form"),
		Description: new("Deterministic form covering ACP elicitation field and value shapes"),
		Properties: acp.Object[v1.ElicitationPropertySchema]{
			field("name", str(v1.StringPropertySchema{})),
			field("email", str(v1.StringPropertySchema{Format: new(v1.StringFormatEmail)})),
			field("homepage", str(v1.StringPropertySchema{Format: new(v1.StringFormatURI)})),
			field("birthday", str(v1.StringPropertySchema{Format: new(v1.StringFormatDate)})),
			field("available_at", str(v1.StringPropertySchema{Format: new(v1.StringFormatDateTime)})),
			field("confidence", v1.ElicitationPropertySchema{Kind: "number", Number: &v1.NumberPropertySchema{
				Minimum: new(json.Number("0.0")), Maximum: new(json.Number("1.0")),
			}}),
			field("age", v1.ElicitationPropertySchema{Kind: "integer", Integer: &v1.IntegerPropertySchema{
				Minimum: new(int64(0)), Maximum: new(int64(120)),
			}}),
			field("confirmed", v1.ElicitationPropertySchema{Kind: "boolean"}),
			field("priority", str(v1.StringPropertySchema{Enum: []string{"low", "normal", "high"}})),
			field("tags", v1.ElicitationPropertySchema{Kind: "array", Array: &v1.MultiSelectPropertySchema{
				Items: v1.MultiSelectItems{Kind: "string", String: &v1.StringMultiSelectItems{Enum: acp.List[string]{"rust", "acp", "testy"}}},
			}}),
		},
		Required: []string{"name", "confidence", "age", "confirmed"},
	}, new(t.toolID("testy-elicit-tool")), "Accept the Testy session-scoped form elicitation")
}

func (t *turn) formDecline() v1.CreateElicitationRequest {
	return t.form("session", &v1.ElicitationSchema{Properties: acp.Object[v1.ElicitationPropertySchema]{
		{Name: "reason", Value: v1.ElicitationPropertySchema{Kind: "string"}},
	}}, nil, "Decline the Testy session-scoped form elicitation")
}

func (t *turn) formCancel() v1.CreateElicitationRequest {
	return t.form("testy-request-form-cancel", &v1.ElicitationSchema{
		Properties: acp.Object[v1.ElicitationPropertySchema]{
			{Name: "confirmed", Value: v1.ElicitationPropertySchema{Kind: "boolean"}},
		},
		Required: []string{"confirmed"},
	}, nil, "Cancel the Testy request-scoped form elicitation")
}

// form is a request for a form; its scope is the session or a request id.
func (t *turn) form(scope string, s *v1.ElicitationSchema, tool *v1.ToolCallID, message string) v1.CreateElicitationRequest {
	s.Type = new(v1.ElicitationSchemaTypeObject)
	r := v1.CreateElicitationRequest{Mode: new("form"), ToolCallID: tool, RequestedSchema: s, Message: message}
	if scope == "session" {
		r.SessionID = new(v1.SessionID(t.s.id))
	} else {
		r.RequestID = raw(scope)
	}
	return r
}

func (t *turn) urlAccept() v1.CreateElicitationRequest {
	return v1.CreateElicitationRequest{
		Mode: new("url"), SessionID: new(v1.SessionID(t.s.id)), ElicitationID: new(v1.ElicitationID("testy-url-session")),
		URL: new("https://example.com/testy/session"), Message: "Accept the Testy session-scoped URL elicitation",
	}
}

func (t *turn) urlDecline() v1.CreateElicitationRequest {
	return v1.CreateElicitationRequest{
		Mode: new("url"), RequestID: raw("testy-request-url-decline"), ElicitationID: new(v1.ElicitationID("testy-url-request")),
		URL: new("https://example.com/testy/request"), Message: "Decline the Testy request-scoped URL elicitation",
	}
}

// compact is JSON on one line without blanks.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

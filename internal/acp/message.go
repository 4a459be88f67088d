package acp

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Kind is what a message is by its shape.
type Kind int

// The kinds of a message.
const (
	Invalid      Kind = iota // JSON that is no message; it is answered with an error
	Request                  // a call that wants an answer
	Notification             // a call that wants none
	Response                 // an answer
	Malformed                // has the shape of an answer but is none; it is ignored
)

// A Message is one JSON-RPC message.
type Message struct {
	Kind   Kind
	ID     ID // as far as it could be read
	Method string
	Params json.RawMessage // nil if absent or null
	Result json.RawMessage // nil in an answer that is an error
	Error  *Error
	Extra  []string // properties that a message does not have, in no order
}

// Decoded is a line taken apart.
type Decoded struct {
	Messages []Message
	Batch    bool
	Err      *Error
}

// Decode takes a line apart: one message, or those of a batch. The error is
// CodeParse for what is not JSON, and CodeInvalidRequest for an empty batch.
func Decode(line []byte) (messages []Message, batch bool, err *Error) {
	line = bytes.TrimSpace(line)
	if !utf8.Valid(line) || !json.Valid(line) {
		text := string(bytes.ToValidUTF8(line, []byte("\uFFFD")))
		return nil, false, NewError(CodeParse, map[string]string{"line": text})
	}
	if line[0] != '[' {
		return []Message{decodeOne(line)}, false, nil
	}
	var entries []json.RawMessage
	if json.Unmarshal(line, &entries) != nil || len(entries) == 0 {
		return nil, true, NewError(CodeInvalidRequest, nil)
	}
	for _, e := range entries {
		messages = append(messages, decodeOne(e))
	}
	return messages, true, nil
}

func decodeOne(raw []byte) Message {
	var f map[string]json.RawMessage
	if json.Unmarshal(raw, &f) != nil || f == nil {
		return Message{Kind: Invalid}
	}
	id, hasID := f["id"]
	m := Message{Params: f["params"]}
	for name := range f {
		switch name {
		case "jsonrpc", "id", "method", "params", "result", "error":
		default:
			m.Extra = append(m.Extra, name)
		}
	}
	readable := true
	if hasID {
		m.ID, readable = ParseID(id)
	}
	_, hasResult := f["result"]
	_, hasError := f["error"]
	var version string
	proper := json.Unmarshal(f["jsonrpc"], &version) == nil && version == "2.0"
	if _, isCall := f["method"]; !isCall && (hasResult || hasError) {
		if !proper || !hasID || !readable || !m.answer(f) {
			m.Kind = Malformed
			return m
		}
		m.Kind = Response
		return m
	}
	if !proper || !readable || json.Unmarshal(f["method"], &m.Method) != nil || f["method"][0] != '"' || !m.structured() {
		m.Kind = Invalid
		return m
	}
	m.Kind = Notification
	if hasID {
		m.Kind = Request
	}
	return m
}

// structured settles the params, which are an object, an array or absent.
func (m *Message) structured() bool {
	if len(m.Params) == 0 || string(m.Params) == "null" {
		m.Params = nil
		return true
	}
	return m.Params[0] == '{' || m.Params[0] == '['
}

// answer reads the one of result and error that is there.
func (m *Message) answer(f map[string]json.RawMessage) bool {
	result, hasResult := f["result"]
	raw, hasError := f["error"]
	if hasResult == hasError {
		return false
	}
	if hasResult {
		m.Result = result
		return true
	}
	var e struct {
		Code    *int            `json:"code"`
		Message *string         `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(raw, &e) != nil || e.Code == nil || e.Message == nil {
		return false
	}
	m.Error = &Error{Code: *e.Code, Message: *e.Message, Data: e.Data}
	return true
}

// wire is a message as it is written: fixed order, absent fields left out.
type wire struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      *ID             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// EncodeCall is a request, or a notification if id is zero.
func EncodeCall(id ID, method string, params any) ([]byte, error) {
	w := wire{JSONRPC: "2.0", Method: method, Params: params}
	if !id.IsZero() {
		w.ID = &id
	}
	return Marshal(w)
}

// EncodeAnswer is the response to id: err if it is not nil, else result.
func EncodeAnswer(id ID, result any, err error) ([]byte, error) {
	w := wire{JSONRPC: "2.0", ID: &id}
	if err == nil {
		if w.Result, err = Marshal(result); err == nil {
			return Marshal(w)
		}
	}
	w.Result, w.Error = nil, asError(err)
	return Marshal(w)
}

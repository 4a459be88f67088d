package acp

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The error codes of JSON-RPC and of the protocol.
const (
	CodeParse              = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternal           = -32603
	CodeCancelled          = -32800
	CodeAuthRequired       = -32000
	CodeNotFound           = -32002
	CodeUnsupportedVersion = -32022
)

// An Error is the error object of a response.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error tells code, message and data on one line.
func (e *Error) Error() string {
	if len(e.Data) == 0 {
		return fmt.Sprintf("%s (%d)", e.Message, e.Code)
	}
	var text string
	if json.Unmarshal(e.Data, &text) != nil {
		text = string(e.Data)
	}
	return fmt.Sprintf("%s (%d): %s", e.Message, e.Code, text)
}

// NewError is the error of a code with its standard message and with data,
// which is left out when it is nil.
func NewError(code int, data any) *Error {
	e := &Error{Code: code, Message: message(code)}
	if data == nil {
		return e
	}
	raw, err := Marshal(data)
	if err != nil {
		raw, _ = Marshal(err.Error()) // a string always marshals
	}
	e.Data = raw
	return e
}

// InvalidParams is the error -32602 with a sentence as its data.
func InvalidParams(format string, args ...any) *Error {
	return NewError(CodeInvalidParams, fmt.Sprintf(format, args...))
}

// asError turns what a handler failed with into an error object.
func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return NewError(CodeInternal, err.Error())
}

func message(code int) string {
	switch code {
	case CodeParse:
		return "Parse error"
	case CodeInvalidRequest:
		return "Invalid request"
	case CodeMethodNotFound:
		return "Method not found"
	case CodeInvalidParams:
		return "Invalid params"
	case CodeCancelled:
		return "Request cancelled"
	case CodeAuthRequired:
		return "Authentication required"
	case CodeNotFound:
		return "Resource not found"
	case CodeUnsupportedVersion:
		return "Unsupported protocol version"
	default:
		return "Internal error"
	}
}

package op

import (
	"net/http"

	"roundtable/internal/fault"
)

// Status is the HTTP status (RFC 9110) of a kind of fault, on every interface
// that answers over HTTP.
func Status(k fault.Kind) int { return status[k] }

var status = map[fault.Kind]int{
	fault.Internal:        http.StatusInternalServerError,
	fault.Invalid:         http.StatusBadRequest,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Forbidden:       http.StatusForbidden,
	fault.NotFound:        http.StatusNotFound,
	fault.Conflict:        http.StatusConflict,
	fault.TooLarge:        http.StatusRequestEntityTooLarge,
	fault.Refused:         http.StatusUnprocessableEntity,
	fault.Limit:           http.StatusTooManyRequests,
	fault.Unavailable:     http.StatusServiceUnavailable,
}

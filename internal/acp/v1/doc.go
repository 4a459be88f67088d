// Package v1 holds the messages of version 1 of the Agent Client Protocol.
// types.go is made from the schema; a test in the package gen says when it is
// out of date. What always holds: a union keeps a variant that is unknown here,
// and a required list is never written as null.
package v1

//go:generate go run ../gen -version 1 -out types.go

// Package acp is the wire of the Agent Client Protocol: JSON-RPC 2.0 in both
// directions over lines of JSON. An agent and a client are made of the same
// [Conn].
//
// What always holds:
//
//   - Messages are dispatched one after the other in the order they arrived,
//     on the goroutine that reads. A response completes its request only after
//     everything that came before it was handled. A handler therefore returns
//     quickly and does what takes long in [Conn.Go].
//   - One writer owns the outgoing stream. Lines leave whole and in the order
//     in which they were handed over.
//   - A line longer than the limit costs no more memory than the limit.
//   - A request gets exactly one answer; a response gets none; what is neither
//     gets an error with the id if one could be read, and never ends the
//     connection.
//   - When the stream ends, every request that is still open fails at once.
//   - No goroutine outlives [Conn.Serve].
package acp

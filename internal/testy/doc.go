// Package testy is a deterministic ACP agent for the tests of clients: protocol
// v1, draft v2 and the router that chooses between them.
//
// What always holds:
//
//   - Nothing on the wire depends on time, chance, environment or map order.
//   - A prompt is booked while it is dispatched and only then runs in its own
//     goroutine, so that a cancel on the next line finds it.
//   - Every update of a turn is sent before the turn's response (v2: before its
//     idle update), and nothing of the turn after it.
//   - The agent itself is honest: what --fault asks for happens in a filter
//     between it and the wire.
package testy

// Package peers tests testy and our client against the software of others: the
// official TypeScript SDK and coder/acp-go-sdk. It has no code of its own. The
// TypeScript peers are installed by tools/install.sh; without node, their tests
// are skipped and say so.
package peers

package client_test

import (
	"os"
	"testing"

	"roundtable/internal/acp/client"
)

// BenchmarkUpdates is a turn of ten thousand updates from another process,
// delivered in order and judged.
func BenchmarkUpdates(b *testing.B) {
	n := 0
	cfg := client.Config{Command: agent(b, "--fault=flood=10000"), Event: func(client.Event) { n++ }}
	c, err := client.Start(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Stop(b.Context())
	s, err := c.NewSession(b.Context(), "/")
	if err != nil {
		b.Fatal(err)
	}
	n = 0
	for b.Loop() {
		if _, err := s.Prompt(b.Context(), client.Text("greet")); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "updates/s")
	if len(c.Findings()) > 0 {
		b.Error(c.Findings()[0])
	}
}

// TestUpdatesPerSecond holds the figure that the documentation gives.
func TestUpdatesPerSecond(t *testing.T) {
	if os.Getenv("ROUNDTABLE_LONG") == "" {
		t.Skip("a figure for a quiet machine: set ROUNDTABLE_LONG=1")
	}
	r := testing.Benchmark(BenchmarkUpdates)
	if got := r.Extra["updates/s"]; got < 20_000 {
		t.Errorf("%.0f updates/s", got)
	}
}

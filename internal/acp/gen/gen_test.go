package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"roundtable/internal/acp/schema"
	"roundtable/internal/acp/schema/sample"
	v1 "roundtable/internal/acp/v1"
	v2 "roundtable/internal/acp/v2"
)

func TestTypesAreCurrent(t *testing.T) {
	for version := 1; version <= 2; version++ {
		want, err := Generate(version)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(fmt.Sprintf("../v%d/types.go", version))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("v%d/types.go is out of date: go generate ./internal/acp/...", version)
		}
	}
}

// TestTypesFitTheSchema sends random valid values through the Go types: what
// comes out is valid, and equal but for properties that were null.
func TestTypesFitTheSchema(t *testing.T) {
	rnd, rounds := rand.New(rand.NewPCG(1, 2)), 6
	if os.Getenv("ROUNDTABLE_LONG") != "" {
		rounds = 200
	}
	for _, c := range []struct {
		version int
		next    bool
		make    func(string) any
	}{{1, false, v1.New}, {1, true, v1.New}, {2, false, v2.New}, {2, true, v2.New}} {
		set, err := schema.Load(c.version, c.next)
		if err != nil {
			t.Fatal(err)
		}
		maker, err := sample.New(set, rnd.IntN)
		if err != nil {
			t.Fatal(err)
		}
		defs, err := set.Names()
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		names := []string{}
		for name := range defs {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			if c.make(name) == nil {
				continue
			}
			count++
			for range rounds {
				value, err := maker.Value(name)
				if err != nil {
					t.Fatal(err)
				}
				roundTrip(t, set.Def(name), name, value, c.make(name))
			}
		}
		if count < 130 {
			t.Errorf("version %d: only %d types", c.version, count)
		}
	}
}

func roundTrip(t *testing.T, def *schema.Type, name string, value, into any) {
	t.Helper()
	in, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := def.Validate(in); err != nil {
		t.Fatalf("%s: the sample %s does not fit: %v", name, in, err)
	}
	if err := json.Unmarshal(in, into); err != nil {
		t.Errorf("%s: %s: %v", name, in, err)
		return
	}
	out, err := json.Marshal(into)
	if err != nil {
		t.Errorf("%s: %s: %v", name, in, err)
		return
	}
	if err := def.Validate(out); err != nil {
		t.Errorf("%s: %s became %s: %v", name, in, out, err)
	}
	var back any
	if err := json.Unmarshal(out, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(withoutNull(value), withoutNull(back)); diff != "" {
		t.Errorf("%s: %s became %s", name, in, out)
	}
}

func withoutNull(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, e := range v {
			if e != nil {
				out[name] = withoutNull(e)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, withoutNull(e))
		}
		return out
	}
	return v
}

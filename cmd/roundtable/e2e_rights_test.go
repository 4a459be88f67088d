package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"roundtable/internal/auth"
)

// A rule is one line of docs/rights.md.
type rule struct {
	op, method, path string
	marks            map[string]string // by role
}

// ruled reads the document that tells people who may do what.
func ruled(t *testing.T) (all []rule, roles []string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	cells := func(line string) (out []string) {
		for c := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			out = append(out, strings.TrimSpace(c))
		}
		return out
	}
	for line := range strings.Lines(string(b)) {
		c := cells(strings.TrimSpace(line))
		switch {
		case len(c) < 3 || strings.HasPrefix(c[0], "---"):
		case c[0] == "operation":
			roles = c[2:]
		default:
			method, path, _ := strings.Cut(strings.Trim(c[1], "`"), " ")
			r := rule{op: c[0], method: method, path: path, marks: map[string]string{}}
			for i, role := range roles {
				r.marks[role] = c[2+i]
			}
			all = append(all, r)
		}
	}
	if len(all) < 50 || len(roles) != len(auth.Roles) {
		t.Fatalf("%d operations and %d roles are read", len(all), len(roles))
	}
	return all, roles
}

// allows says what the document means for a principal.
func (r rule) allows(role string, kind string, everywhere bool) bool {
	mark, star := strings.CutSuffix(r.marks[role], "*")
	return (mark == "x" || mark == "h" && kind == "human") && (everywhere || !star)
}

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// probe asks for an operation with an input that leads nowhere, and returns
// the status and the code of the answer.
func (s *venue) probe(t *testing.T, r rule, workspace, token string) (status int, code string) {
	t.Helper()
	path := strings.Replace(r.path, "{workspace_id}", workspace, 1)
	q := request{method: r.method, path: placeholder.ReplaceAllString(path, "X-0"), token: token}
	if r.method == "POST" {
		q.body = "{}"
	}
	res, err := http.DefaultClient.Do(s.request(t, q))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() // of a stream there is more
	if res.StatusCode < 400 {
		return res.StatusCode, ""
	}
	var p problem
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
		t.Fatalf("%s: %v", r.op, err)
	}
	return res.StatusCode, p.Code
}

// neither reports whether an answer says nothing of the asker's rights.
func neither(status int) bool { return status < 500 && status != 401 && status != 403 }

// A member is a principal with one role.
type member struct {
	role, kind, token string
	everywhere        bool
}

// members makes a person and an agent for each role, in the workspace and in
// all.
func (s *venue) members(t *testing.T, roles []string) (all []member) {
	t.Helper()
	for _, role := range roles {
		for _, kind := range []string{"human", "agent"} {
			for _, in := range []string{s.workspace, auth.AllWorkspaces} {
				m := member{role: role, kind: kind, everywhere: in == auth.AllWorkspaces}
				name := strings.Join([]string{role, kind, in}, "-")
				if role == "override" && kind == "agent" { // which only people can have
					s.refused(t, request{path: "/principals", body: args{"name": name, "kind": kind, "owner": "o",
						"roles": []args{{"workspace_id": in, "role": role}}}}, 400, "invalid_field")
					continue
				}
				_, m.token = s.joinAs(t, strings.ReplaceAll(name, "*", "all"), kind, "o", in, role)
				all = append(all, m)
			}
		}
	}
	return all
}

// TestRightsOverTransports: who may is what docs/rights.md says, for every
// operation, role and kind, over HTTP and over MCP.
func TestRightsOverTransports(t *testing.T) {
	t.Parallel()
	s := served(t)
	all, roles := ruled(t)
	for _, m := range s.members(t, roles) {
		for _, r := range all {
			star := strings.Contains(strings.Join(slices.Collect(maps.Values(r.marks)), ""), "*")
			if m.everywhere && !star && !strings.Contains(r.path, "{workspace_id}/events") {
				continue // a role in all workspaces is one in this
			}
			status, code := s.probe(t, r, s.workspace, m.token)
			may := r.allows(m.role, m.kind, m.everywhere)
			if may != neither(status) || !may && status != 403 {
				t.Errorf("%+v asks %s: %d %s", m, r.op, status, code)
			}
			if !may && code != "forbidden" && code != "people_only" {
				t.Errorf("%+v asks %s: code %s", m, r.op, code)
			}
		}
		if !m.everywhere {
			s.offered(t, all, m)
		}
	}
}

// offered: over MCP somebody is shown, and reaches, the tools they may use.
func (s *venue) offered(t *testing.T, all []rule, m member) {
	t.Helper()
	tools := strings.Fields(tools)
	c := connected(t, s.overHTTP(m.token))
	defer c.Close()
	for _, r := range all {
		tool := strings.ReplaceAll(r.op, ".", "_")
		listed := slices.Contains(tools, tool)
		may := listed && r.allows(m.role, m.kind, m.everywhere)
		if (c.outs[tool] != nil) != may {
			t.Errorf("%+v: the tool %s is listed: %v, should be: %v", m, tool, !may, may)
		}
		if (listed || r.op == "approval.approve" || r.op == "token.issue") && c.reaches(t, tool) != may {
			t.Errorf("%+v: the tool %s is reached: %v, should be: %v", m, tool, !may, may)
		}
	}
}

// reaches calls a tool without arguments: what the caller may not use is not
// there, and anything else is no matter of rights.
func (c *session) reaches(t *testing.T, tool string) bool {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args{}})
	if err != nil {
		if !strings.Contains(err.Error(), "not found") {
			t.Errorf("%s: %v", tool, err)
		}
		return false
	}
	p, _ := r.Meta["roundtable/error"].(map[string]any)
	if kind := text(p, "kind"); kind == "forbidden" || kind == "unauthenticated" || kind == "internal" {
		t.Errorf("%s is there and answers %v", tool, p)
	}
	return true
}

// TestWithoutRight: without a token that is valid nothing is answered, and who
// has no role in a workspace is not told that there is one.
func TestWithoutRight(t *testing.T) {
	t.Parallel()
	s := served(t)
	all, _ := ruled(t)
	other := s.post(t, "", "/workspaces", args{"root": repository(t), "name": "other"}, 201).at("workspace", "workspace_id")
	_, stranger := s.joinAs(t, "stranger", "human", "", other, "operator")
	who, _ := s.joinAs(t, "leaver", "human", "", auth.AllWorkspaces, "admin", "auditor")
	revoked := s.post(t, "", "/tokens", args{"principal_id": who}, 201)
	if a := s.send(t, request{method: "DELETE", path: "/tokens/" + revoked.at("token_id")}); a.status != 200 || a.at("token", "state") != "revoked" {
		t.Fatalf("revoke: %s", a)
	}
	expired := s.token(t, args{"principal_id": who, "expires_in_seconds": 1})
	me := rule{op: "principal.me", method: "GET", path: "/me"}
	eventually(t, func() bool { status, _ := s.probe(t, me, "", expired); return status == 401 })
	valid := s.token(t, args{"principal_id": who})
	for token, want := range map[string]string{"-": "authentication_required", "nonsense": "invalid_token", revoked.at("token"): "invalid_token",
		expired: "token_expired", valid[:len(valid)-1]: "invalid_token", valid[:len(valid)-2] + "--": "invalid_token"} {
		for _, r := range all {
			if status, code := s.probe(t, r, s.workspace, token); status != 401 || code != want {
				t.Errorf("%.20s asks %s: %d %s", token, r.op, status, code)
			}
		}
		res, err := (&http.Client{Transport: withBearer{strings.Trim(token, "-")}}).Post(s.at+"/mcp", "application/json", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 401 || res.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%.20s over MCP: %s", token, res.Status)
		}
	}
	for _, r := range all {
		if !strings.Contains(r.path, "{workspace_id}") {
			continue
		}
		if status, code := s.probe(t, r, s.workspace, stranger); code != "people_only" && (status != 404 || code != "workspace_not_found") {
			t.Errorf("a stranger asks %s: %d %s", r.op, status, code)
		}
	}
}

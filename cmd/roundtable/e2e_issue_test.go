package main

import "testing"

// TestScopes: a token is narrowed to what is there, and never to nothing; a
// narrowed one gives no rights.
func TestScopes(t *testing.T) {
	t.Parallel()
	s := served(t)
	who, _ := s.joinAs(t, "grace", "human", "", "*", "admin")
	issue := func(scope args) request {
		return request{path: "/tokens", body: args{"principal_id": who, "scope": scope}}
	}
	for _, x := range []struct {
		scope  args
		status int
		code   string
	}{
		{args{"operations": []string{}}, 400, "invalid_field"},
		{args{"operations": []string{""}}, 400, "invalid_field"},
		{args{"operations": []string{"vote.cats"}}, 400, "invalid_field"},
		{args{"operations": []string{"vote_cast"}}, 400, "invalid_field"},
		{args{"workspace_id": ""}, 400, "invalid_field"},
		{args{"task_id": ""}, 400, "invalid_field"},
		{args{"proposal_id": ""}, 400, "invalid_field"},
		{args{"workspace_id": "WS-9"}, 404, "workspace_not_found"},
		{args{"task_id": "T-9"}, 404, "task_not_found"},
		{args{"proposal_id": "P-9"}, 404, "proposal_not_found"},
		{args{"workspace_id": " "}, 404, "workspace_not_found"},
	} {
		s.refused(t, issue(x.scope), x.status, x.code)
	}
	for _, scope := range []args{{"operations": []string{"token.issue", "principal.create"}}, {"workspace_id": s.workspace}} {
		narrow := s.token(t, args{"principal_id": who, "scope": scope})
		s.refused(t, request{token: narrow, path: "/tokens", body: args{"principal_id": who}}, 403, "token_scope")
		s.refused(t, request{token: narrow, path: "/principals", body: args{"name": "x", "kind": "human", "roles": []args{}}}, 403, "token_scope")
	}
	s.token(t, args{"principal_id": who, "scope": args{"operations": []string{"test.log", "proposal.patch_raw", "event.list"}}})
}

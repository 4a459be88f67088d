package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A bad call is one that must be refused, over HTTP and, where in is set, as
// a call of the tool with the same object.
type bad struct {
	name   string
	q      request
	tool   string
	in     string
	status int
	code   string
	next   string // the operation of the first step that would help
}

const noID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

const claimA = `{"resource_id":"file:a.txt","claim_type":"read"`

// badShapes are inputs that are not what the schema asks for.
func badShapes() []bad {
	claim := func(name, in, code string) bad {
		return bad{name: name, q: request{path: "~/claims", body: in}, tool: "resource_claim", in: in, status: 400, code: code}
	}
	onlyHTTP := func(b bad) bad { b.in = ""; return b }
	return []bad{
		claim("unknown field", claimA+`,"actor":"PR-1"}`, "unknown_field"),
		claim("key in other case", `{"Resource_id":"file:a.txt","claim_type":"read"}`, "unknown_field"),
		claim("wrong type", `{"resource_id":1,"claim_type":"read"}`, "invalid_field"),
		claim("null", `{"resource_id":null,"claim_type":"read"}`, "invalid_field"),
		claim("no such value", `{"resource_id":"file:a.txt","claim_type":"steal"}`, "invalid_field"),
		claim("fraction", claimA+`,"ttl_seconds":1.5}`, "invalid_field"),
		claim("too long a lease", claimA+`,"ttl_seconds":86401}`, "invalid_field"),
		claim("missing field", `{"claim_type":"read"}`, "missing_field"),
		claim("key twice", claimA+`,"claim_type":"write"}`, "malformed_json"),
		claim("lone surrogate", `{"resource_id":"file:\ud800","claim_type":"read"}`, "malformed_json"),
		claim("leaves the tree", `{"resource_id":"file:../a.txt","claim_type":"read"}`, "invalid_resource"),
		claim("not in its one spelling", `{"resource_id":"file:./dir//c.txt","claim_type":"read"}`, "invalid_resource"),
		claim("unknown task", claimA+`,"task_id":"T-`+noID+`"}`, "task_not_found").as(404),
		onlyHTTP(claim("not an object", `[]`, "invalid_field")),
		onlyHTTP(claim("trailing bytes", claimA+`} {}`, "malformed_json")),
		onlyHTTP(claim("no end", claimA, "malformed_json")),
		onlyHTTP(claim("invalid UTF-8", "{\"resource_id\":\"file:\xff\",\"claim_type\":\"read\"}", "malformed_json")),
		onlyHTTP(claim("11 MiB", claimA+`,"rationale":"`+strings.Repeat("x", 11<<20)+`"}`, "body_too_large")).as(413),
		{name: "blank key", q: request{path: "~/claims", body: claimA + `}`, key: " "}, status: 400, code: "idempotency_key_required"},
		{name: "no key", q: request{path: "~/claims", body: claimA + `}`, key: "-"}, status: 400, code: "idempotency_key_required"},
		{name: "endless key", q: request{path: "~/claims", body: claimA + `}`, key: strings.Repeat("k", 256)}, status: 400, code: "invalid_idempotency_key"},
		{name: "not JSON", q: request{path: "~/claims", body: claimA + `}`, media: "text/plain"}, status: 415, code: "unsupported_media_type"},
		{name: "query of a write", q: request{path: "~/claims?ttl_seconds=5", body: claimA + `}`}, status: 400, code: "unknown_field"},
	}
}

func (b bad) as(status int) bad { b.status = status; return b }

// badReads are questions that have no answer.
func badReads() []bad {
	get := func(name, path, tool, in string, status int, code string) bad {
		return bad{name: name, q: request{method: "GET", path: path}, tool: tool, in: in, status: status, code: code}
	}
	return []bad{
		get("unknown query parameter", "~/tasks?colour=red", "task_list", `{"colour":"red"}`, 400, "unknown_field"),
		get("cursor of nothing", "~/tasks?cursor=zzz", "task_list", `{"cursor":"zzz"}`, 400, "invalid_cursor"),
		get("too large a page", "~/tasks?limit=201", "task_list", `{"limit":201}`, 400, "invalid_field"),
		get("beyond the head", "~/tasks?after=999999999", "task_list", `{"after":999999999}`, 400, "invalid_position"),
		get("events beyond the head", "~/events?after=999999999", "", "", 400, "invalid_position"),
		get("stream beyond the head", "~/events/stream?after=999999999", "", "", 400, "invalid_position"),
		get("unknown stream parameter", "~/events/stream?color=1", "", "", 400, "unknown_field"),
		get("negative position", "~/tasks?after=-1", "task_list", `{"after":-1}`, 400, "invalid_field"),
		get("unknown task", "~/tasks/T-"+noID, "task_get", `{"task_id":"T-`+noID+`"}`, 404, "task_not_found"),
		get("unknown proposal", "~/proposals/P-"+noID, "proposal_get", `{"proposal_id":"P-`+noID+`"}`, 404, "proposal_not_found"),
		get("gates of no proposal", "~/proposals/P-"+noID+"/gates", "proposal_explain", `{"proposal_id":"P-`+noID+`"}`, 404, "proposal_not_found"),
		get("votes on no proposal", "~/proposals/P-"+noID+"/votes", "vote_list", `{"proposal_id":"P-`+noID+`"}`, 404, "proposal_not_found"),
		get("unknown transaction", "~/transactions/TX-"+noID, "transaction_get", `{"transaction_id":"TX-`+noID+`"}`, 404, "transaction_not_found"),
		get("recovery of none", "~/transactions/TX-"+noID+"/recovery", "transaction_recovery", `{"transaction_id":"TX-`+noID+`"}`, 404, "transaction_not_found"),
		get("unknown test run", "~/test-runs/TR-"+noID, "test_get_result", `{"test_run_id":"TR-`+noID+`"}`, 404, "test_run_not_found"),
		get("unknown approval", "~/approvals/H-"+noID, "human_approval_status", `{"approval_id":"H-`+noID+`"}`, 404, "approval_not_found"),
		get("unknown claim", "~/claims/C-"+noID, "", "", 404, "claim_not_found"),
		get("unknown principal", "/principals/PR-"+noID, "", "", 404, "principal_not_found"),
		get("unknown workspace", "/workspaces/WS-"+noID+"/tasks", "task_list", `{"workspace_id":"WS-`+noID+`"}`, 404, "workspace_not_found"),
		get("no such path", "/nothing", "", "", 404, "route_not_found"),
		{name: "method", q: request{method: "PUT", path: "~/tasks", body: "{}"}, status: 405, code: "method_not_allowed"},
		{name: "unknown token", q: request{method: "DELETE", path: "/tokens/TK-" + noID}, status: 404, code: "token_not_found"},
	}
}

// badPatches are proposals that can never be, and states that have moved on.
func badPatches(proposal string) []bad {
	create := func(name, patch string, status int, code string) bad {
		in, err := json.Marshal(args{"title": "x", "summary_md": "y", "patch": patch})
		if err != nil {
			panic(err)
		}
		return bad{name: name, q: request{path: "~/proposals", body: string(in)}, tool: "proposal_create", in: string(in), status: status, code: code}
	}
	attach := `"expected_revision":7,"patch":"x"}`
	vote := `"vote":"approve","reason_md":"x","revision":9}`
	of := `{"proposal_id":"` + proposal + `",`
	return []bad{
		create("no patch at all", "please change the file", 422, "parse.not_a_diff"),
		create("hunk that lies", strings.Replace(diffA, "-1,3 +1,3", "-1,9 +1,9", 1), 422, "parse.hunk_count_mismatch"),
		create("path that leaves", strings.ReplaceAll(diffA, "a.txt", "../a.txt"), 422, "path.traversal"),
		create("the git folder", strings.ReplaceAll(diffA, "a.txt", ".git/config"), 422, "path.dotgit"),
		create("empty", "", 400, "missing_field"),
		{name: "stale revision", q: request{path: "~/proposals/" + proposal + "/revisions", body: "{" + attach}, tool: "proposal_attach_patch",
			in: of + attach, status: 409, code: "stale_revision", next: "proposal.get"},
		{name: "revision that is not", q: request{path: "~/proposals/" + proposal + "/votes", body: "{" + vote}, tool: "vote_cast",
			in: of + vote, status: 409, code: "stale_revision", next: "proposal.get"},
		{name: "gates", q: request{path: "~/proposals/" + proposal + "/apply", body: "{}"}, tool: "patch_apply",
			in: `{"proposal_id":"` + proposal + `"}`, status: 409, code: "gates_not_met", next: "resource.claim"},
		{name: "id in path and body", q: request{path: "~/proposals/" + proposal + "/withdraw", body: args{"proposal_id": proposal}}, status: 400, code: "invalid_field"},
	}
}

// TestBadInput: what is wrong is refused with its status, its code and what
// would help, the same over both transports, and leaves nothing behind.
func TestBadInput(t *testing.T) {
	t.Parallel()
	s := served(t)
	author := s.join(t, "author", "agent", "implementer")
	proposal := s.post(t, author, "~/proposals", args{"title": "x", "summary_md": "y", "patch": diffA}, 201).at("proposal", "proposal_id")
	c := connected(t, s.overHTTP(s.admin))
	defer c.Close()
	before, kept := s.head(t), s.kept(t)
	all := append(append(badShapes(), badReads()...), badPatches(proposal)...)
	for _, b := range all {
		t.Run(b.name, func(t *testing.T) {
			if b.tool == "proposal_attach_patch" {
				b.q.token = author
			}
			a := s.refused(t, b.q, b.status, b.code)
			if steps := list(a.body, "next"); b.next != "" && (len(steps) == 0 || text(steps[0], "op") != b.next) {
				t.Errorf("what would help is %v, not %s", steps, b.next)
			}
			if b.in == "" {
				return
			}
			over := c
			if b.q.token == author {
				over = connected(t, s.overHTTP(author))
				defer over.Close()
			}
			p := over.refused(t, b.tool, json.RawMessage(b.in), b.code)
			if diff := cmp.Diff(common(a.body), common(p)); diff != "" {
				t.Errorf("over MCP it is another problem:\n%s", diff)
			}
		})
	}
	if now := s.head(t); now != before {
		t.Errorf("refused calls moved the head from %s to %s", before, now)
	}
	if now := s.kept(t); now != kept {
		t.Errorf("refused calls left %d more files", now-kept)
	}
}

// kept counts the files of the store of patches and logs.
func (s *venue) kept(t *testing.T) (n int) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(s.data, "blobs"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
		}
		return err
	})
	if err != nil || n == 0 {
		t.Errorf("%d files are kept: %v", n, err)
	}
	return n
}

// common is a problem without what belongs to one transport or one request.
func common(p map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range p {
		if k != "type" && k != "title" && k != "status" && k != "request_id" {
			out[k] = v
		}
	}
	return out
}

// TestKeys: a key is for one wish of one principal.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := served(t)
	one := request{path: "~/tasks", key: "k1", body: args{"title": "one", "body_md": ""}}
	first, again := s.send(t, one), s.send(t, one)
	if first.status != 201 || !bytes.Equal(first.raw, again.raw) {
		t.Errorf("the same call again: %s, %s", first, again)
	}
	before := s.head(t)
	other := one
	other.body = args{"title": "two", "body_md": ""}
	s.refused(t, other, 409, "idempotency_key_reused")
	c := connected(t, s.overHTTP(s.admin))
	defer c.Close()
	c.refused(t, "task_create", args{"title": "three", "body_md": "", "idempotency_key": "k1"}, "idempotency_key_reused")
	if now := s.head(t); now != before {
		t.Errorf("the head went from %s to %s", before, now)
	}
	// Another principal's key is another key, and a refusal does not use one up.
	two := request{path: "~/claims", key: "k1", token: s.join(t, "agent", "agent", "implementer"), body: `{"resource_id":"file:a.txt","claim_type":"stead"}`}
	s.refused(t, two, 400, "invalid_field")
	two.body = `{"resource_id":"file:a.txt","claim_type":"read"}`
	if a := s.send(t, two); a.status != 201 {
		t.Errorf("the key after a refusal: %s", a)
	}
}

// TestBinaryPatch: a patch goes in as it is, and every byte comes out.
func TestBinaryPatch(t *testing.T) {
	t.Parallel()
	s := served(t)
	work := filepath.Join(t.TempDir(), "work")
	sh(t, ".", "git", "clone", "--quiet", s.root, work)
	noise := make([]byte, 70_000)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	want := string(noise) + "\x00\xff\r\n\x00"
	writeFile(t, filepath.Join(work, "image.bin"), want)
	writeFile(t, filepath.Join(work, "crlf.txt"), "one\r\ntwo \x00 nul\n\xfe\xff not UTF-8\nno end")
	sh(t, work, "git", "add", "--all")
	for name, flags := range map[string][]string{"image.bin": {"--binary"}, "crlf.txt": {"--text"}} {
		patch := sh(t, work, "git", append(append([]string{"diff", "--cached", "--full-index"}, flags...), "--", name)...)
		if name == "crlf.txt" && !strings.Contains(patch, "\x00") {
			t.Fatal("the patch has no NUL byte")
		}
		a := s.send(t, request{path: "~/proposals?" + query("title", "Add "+name, "summary_md", "Bytes.", "risk", "low"), media: "text/x-patch", body: patch})
		if a.status != 201 {
			t.Fatal(a)
		}
		s.approved(t, a.at("proposal", "proposal_id"), "file:"+name)
		if done := s.post(t, s.join(t, "lead"+name[:2], "agent", "orchestrator"), "~/proposals/"+a.at("proposal", "proposal_id")+"/apply", args{}, 200); done.at("transaction", "applied") != "yes" {
			t.Fatal(done)
		}
		got, err := os.ReadFile(filepath.Join(s.root, name))
		if err != nil || string(got) != readFile(t, filepath.Join(work, name)) {
			t.Errorf("%s is not what was proposed (%v)", name, err)
		}
	}
}

// approved claims what a proposal of the admin's touches and votes for it.
func (s *venue) approved(t *testing.T, proposal, resource string) {
	t.Helper()
	s.post(t, "", "~/claims", args{"resource_id": resource, "claim_type": "write"}, 201)
	s.post(t, s.join(t, "voter-"+proposal, "agent", "reviewer"), "~/proposals/"+proposal+"/votes", args{"vote": "approve", "reason_md": "Fine."}, 201)
}

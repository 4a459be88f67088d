package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A play is the main job, acted out over the real interfaces.
type play struct {
	root, original                     string
	workspace, adminToken, personToken string
	change                             change

	out           io.Writer
	admin, person *person
	coder, critic *agent
	stream        *stream
	before        string // what git says of the work tree at the start
	claim         string
	proposal      string
	transaction   string
	compensation  string
	failed        error
	number        int
}

// play acts every scene and stops at the first that differs.
func (p *play) play(ctx context.Context, out io.Writer, at string) error {
	p.out = out
	p.admin = newPerson(at, p.workspace, p.adminToken)
	p.scene("People and agents", func() error { return p.cast(ctx, at) })
	if p.failed != nil {
		return p.failed
	}
	defer p.coder.close()
	defer p.critic.close()
	defer p.stream.close()
	p.scene("A claim, and one that is refused", func() error { return p.claims(ctx) })
	p.scene("A proposal that does not fit, and says why", func() error { return p.propose(ctx) })
	p.scene("A corrected revision", func() error { return p.correct(ctx) })
	p.scene("Tests on the tree it would give", func() error { return p.test(ctx) })
	p.scene("A vote", func() error { return p.vote(ctx) })
	p.scene("What still stands in the way", func() error { return p.waiting(ctx) })
	p.scene("A person's approval", func() error { return p.approve(ctx, p.proposal) })
	p.scene("Apply, all or nothing", func() error { return p.apply(ctx) })
	p.scene("Take it back", func() error { return p.takeBack(ctx) })
	p.scene("The history", func() error { return p.history(ctx) })
	if p.failed == nil {
		fmt.Fprintln(out, "\nEvery step was as it should be.")
	}
	return p.failed
}

// scene acts one scene, unless one before it failed.
func (p *play) scene(title string, act func() error) {
	if p.failed != nil {
		return
	}
	p.number++
	fmt.Fprintf(p.out, "\n%d. %s\n", p.number, title)
	if err := act(); err != nil {
		p.failed = fmt.Errorf("scene %d, %s: %w", p.number, title, err)
	}
}

func (p *play) say(format string, args ...any) {
	fmt.Fprintf(p.out, "   "+format+"\n", args...)
}

// cast makes the principals and connects them.
func (p *play) cast(ctx context.Context, at string) (err error) {
	if p.before, err = gitOutput(ctx, p.root, "status", "--porcelain"); err != nil {
		return err
	}
	if p.personToken, err = p.admin.invite(ctx, "ada", "human", "", "operator", "auditor"); err != nil {
		return err
	}
	p.person = newPerson(at, p.workspace, p.personToken)
	p.say("ada     a person: operator")
	tokens := map[string]string{}
	for name, who := range map[string]struct {
		owner string
		roles []string
	}{"coder": {"team-blue", []string{"implementer", "orchestrator"}}, "critic": {"team-red", []string{"implementer", "reviewer"}}} {
		if tokens[name], err = p.admin.invite(ctx, name, "agent", who.owner, who.roles...); err != nil {
			return err
		}
	}
	p.say("coder   an agent of team-blue: implementer, orchestrator")
	p.say("critic  an agent of team-red: implementer, reviewer")
	if p.coder, err = connect(ctx, at, tokens["coder"]); err != nil {
		return err
	}
	if p.critic, err = connect(ctx, at, tokens["critic"]); err != nil {
		p.coder.close()
		return err
	}
	p.stream, err = p.person.follow(ctx)
	return err
}

func (p *play) claims(ctx context.Context) error {
	resource := "file:" + p.change.file
	got, err := p.coder.call(ctx, "resource_claim", args{"resource_id": resource, "claim_type": "write", "rationale": p.change.title})
	if err != nil {
		return err
	}
	p.claim = text(got, "claim", "claim_id")
	p.say("coder holds %s for writing as %s until %s", resource, p.claim, text(got, "claim", "expires_at"))
	_, err = p.critic.call(ctx, "resource_claim", args{"resource_id": resource, "claim_type": "write"})
	refused, err := refusal(err, "claim_conflict")
	if err != nil {
		return err
	}
	p.say("critic is refused: %s", refused.Detail)
	return nil
}

func (p *play) propose(ctx context.Context) error {
	c := p.change
	got, err := p.coder.call(ctx, "proposal_create", args{"title": c.title, "summary_md": c.summary, "risk": c.risk, "patch": c.wrong, "expected_tests": []string{c.test}})
	if err != nil {
		return err
	}
	p.proposal = text(got, "proposal", "proposal_id")
	p.say("coder proposes %s: %s", p.proposal, c.title)
	v, err := p.coder.call(ctx, "patch_validate", args{"proposal_id": p.proposal})
	if err != nil {
		return err
	}
	if v["valid"] != false {
		return errors.New("a patch that does not fit is called valid")
	}
	for _, k := range list(v, "checks") {
		if text(k, "status") == "failed" {
			p.say("check %s failed: %s", text(k, "check"), text(k, "detail"))
		}
	}
	return nil
}

func (p *play) correct(ctx context.Context) error {
	got, err := p.coder.call(ctx, "proposal_attach_patch", args{"proposal_id": p.proposal, "expected_revision": 1, "patch": p.change.right})
	if err != nil {
		return err
	}
	p.say("coder attaches revision %s", text(got, "proposal", "revision"))
	v, err := p.coder.call(ctx, "patch_validate", args{"proposal_id": p.proposal})
	if err != nil {
		return err
	}
	if v["valid"] != true || v["appliable"] != false {
		return fmt.Errorf("valid is %v and appliable is %v", v["valid"], v["appliable"])
	}
	p.say("valid; not appliable yet")
	return nil
}

func (p *play) test(ctx context.Context) error {
	if _, err := p.coder.call(ctx, "proposal_request_review", args{"proposal_id": p.proposal}); err != nil {
		return err
	}
	p.say("coder asks for review, which starts the expected test: %s", p.change.test)
	run, err := p.tested(ctx)
	if err != nil {
		return err
	}
	p.say("%s %s on candidate tree %.12s in %s ms, isolation %s", text(run, "test_run_id"), text(run, "state"), text(run, "candidate_tree"), text(run, "duration_ms"), text(run, "isolation"))
	for line := range strings.SplitSeq(text(run, "summary"), "\n") {
		p.say("  | %s", line)
	}
	if text(run, "state") != "passed" {
		return fmt.Errorf("the test is %s: %s", text(run, "state"), text(run, "reason"))
	}
	return p.unchanged(ctx, "the work tree is as it was: tests run on a copy")
}

// tested waits for the run that the review started.
func (p *play) tested(ctx context.Context) (map[string]any, error) {
	id, err := p.stream.await(ctx, "test_run.finished", func(data map[string]any) string { return text(data, "test_run_id") })
	if err != nil {
		return nil, err
	}
	got, err := p.coder.call(ctx, "test_get_result", args{"test_run_id": id, "after": p.stream.position()})
	if err != nil {
		return nil, err
	}
	run, _ := got["test_run"].(map[string]any)
	return run, nil
}

// unchanged checks that git says of the work tree what it said at the start.
func (p *play) unchanged(ctx context.Context, say string) error {
	now, err := gitOutput(ctx, p.root, "status", "--porcelain")
	if err != nil {
		return err
	}
	if now != p.before {
		return fmt.Errorf("the work tree has changed:\n%s", now)
	}
	p.say("%s", say)
	return nil
}

func (p *play) vote(ctx context.Context) error {
	_, err := p.coder.post(ctx, p.person, "/proposals/"+p.proposal+"/votes", args{"vote": "approve", "reason_md": "mine"})
	refused, err := refusal(err, "forbidden")
	if err != nil {
		return err
	}
	p.say("coder cannot vote: %s", refused.Detail)
	got, err := p.critic.call(ctx, "vote_cast", args{"proposal_id": p.proposal, "vote": "approve", "reason_md": "Small, tested, and the empty name is handled.", "confidence": 0.9})
	if err != nil {
		return err
	}
	p.say("critic approves revision %s", text(got, "vote", "revision"))
	return nil
}

func (p *play) waiting(ctx context.Context) error {
	g, err := p.person.get(ctx, "/proposals/"+p.proposal+"/gates")
	if err != nil {
		return err
	}
	for _, gate := range list(g, "gates") {
		p.say("%-15s %-15s %s", text(gate, "gate"), text(gate, "status"), first(gate, "because"))
	}
	_, err = p.person.post(ctx, "/proposals/"+p.proposal+"/apply", args{})
	refused, err := refusal(err, "gates_not_met")
	if err != nil {
		return err
	}
	p.say("ada tries to apply and is refused; what would help: %s", steps(refused.Next))
	return nil
}

// approve has the coder ask and the person say yes.
func (p *play) approve(ctx context.Context, proposal string) error {
	got, err := p.coder.call(ctx, "human_request_approval", args{"subject": p.change.title, "reason_md": "The risk is high.", "proposal_id": proposal})
	if err != nil {
		return err
	}
	id := text(got, "approval", "approval_id")
	if _, err = p.coder.post(ctx, p.person, "/approvals/"+id+"/approve", args{}); err == nil {
		return errors.New("an agent decided for a person")
	}
	if _, err := refusal(err, "people_only"); err != nil {
		return err
	}
	p.say("coder asks for %s; an agent's token cannot decide it", id)
	got, err = p.person.post(ctx, "/approvals/"+id+"/approve", args{"reason_md": "Read and tried."})
	if err != nil {
		return err
	}
	p.say("ada decides: %s", text(got, "approval", "status"))
	return nil
}

func (p *play) apply(ctx context.Context) error {
	got, err := p.person.post(ctx, "/proposals/"+p.proposal+"/apply", args{})
	if err != nil {
		return err
	}
	if text(got, "transaction", "applied") != "yes" {
		return fmt.Errorf("applied is %q: %v", text(got, "transaction", "applied"), got)
	}
	p.transaction = text(got, "transaction", "transaction_id")
	tx, _ := got["transaction"].(map[string]any)
	for _, phase := range list(tx, "phases") {
		p.say("%-9s %s", text(phase, "phase"), text(phase, "status"))
	}
	p.say("%s is %s: tree %.12s", p.transaction, text(got, "transaction", "state"), text(got, "transaction", "after_tree"))
	now, err := gitOutput(ctx, p.root, "status", "--porcelain")
	if err != nil {
		return err
	}
	if !strings.Contains(now, p.change.file) {
		return fmt.Errorf("git sees no change of %s", p.change.file)
	}
	p.say("git says: %s", strings.TrimSpace(now))
	if err := p.shown(ctx, "transaction.applied"); err != nil {
		return err
	}
	return p.claimGone(ctx)
}

// shown checks that the live stream brought an event.
func (p *play) shown(ctx context.Context, event string) error {
	if _, err := p.stream.await(ctx, event, func(map[string]any) string { return event }); err != nil {
		return err
	}
	p.say("the live stream showed %s at position %d", event, p.stream.position())
	return nil
}

func (p *play) claimGone(ctx context.Context) error {
	got, err := p.person.get(ctx, "/claims/"+p.claim)
	if err != nil {
		return err
	}
	if text(got, "claim", "state") != "released" {
		return fmt.Errorf("the claim is %s", text(got, "claim", "state"))
	}
	p.say("the claim ended with it")
	return nil
}

func (p *play) takeBack(ctx context.Context) error {
	got, err := p.coder.call(ctx, "transaction_compensate", args{"transaction_id": p.transaction})
	if err != nil {
		return err
	}
	p.compensation = text(got, "proposal", "proposal_id")
	p.say("coder proposes the exact reverse: %s", p.compensation)
	if _, err := p.coder.call(ctx, "proposal_request_review", args{"proposal_id": p.compensation}); err != nil {
		return err
	}
	if _, err := p.critic.call(ctx, "vote_cast", args{"proposal_id": p.compensation, "vote": "approve", "reason_md": "Gives back what was there."}); err != nil {
		return err
	}
	if err := p.approve(ctx, p.compensation); err != nil {
		return err
	}
	done, err := p.person.post(ctx, "/proposals/"+p.compensation+"/apply", args{})
	if err != nil {
		return err
	}
	if text(done, "transaction", "applied") != "yes" {
		return fmt.Errorf("taking back: %v", done)
	}
	p.say("applied as %s", text(done, "transaction", "transaction_id"))
	return p.unchanged(ctx, "the work tree is byte for byte as at the start")
}

func (p *play) history(ctx context.Context) error {
	if _, err := p.person.server(ctx, "/events/verify"); err == nil {
		return errors.New("a person who is auditor of one workspace verified them all")
	} else if _, err := refusal(err, "forbidden"); err != nil {
		return err
	}
	v, err := p.admin.server(ctx, "/events/verify")
	if err != nil {
		return err
	}
	if v["ok"] != true {
		return fmt.Errorf("the history does not verify: %v", v)
	}
	p.say("%s events, one chain, no gap; root hash %.16s…", text(v, "events"), text(v, "root_hash"))
	if p.original == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(p.original, added)); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the original repository was touched: %w", err)
	}
	p.say("the original repository was not touched")
	return nil
}

// patience is how long a scene waits for what must come.
const patience = 5 * time.Minute

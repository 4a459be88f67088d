package domain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"roundtable/events"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/policy"
)

// A Gate is one condition of applying a proposal, and how it stands.
type Gate struct {
	Gate    string
	Status  string // passed, failed, waiting, error, skipped or not_applicable
	Because []string
	Needs   []string
	Next    []fault.Step
}

// Facts is all that the gates are judged by.
type Facts struct {
	Proposal  Proposal
	Directory Directory
	Claims    Claims
	Policy    policy.Policy
	Patch     PatchFacts
	Now       time.Time
}

// PatchFacts is what the newest revision's patch meets in the tree as it lies
// now.
type PatchFacts struct {
	Refused  *fault.Error // why it does not parse, is not safe or does not fit; nil if it applies
	Compared bool         // the touched paths could be compared with the base
	Moved    []string     // those, and sources of copies, that no longer have the base's state
	Dirty    []string     // touched paths with work that is not committed, where changes are committed
	Rebase   Rebase       // what it comes to on the tree as it is, if the base has moved
	Tree     string       // id of the candidate tree; "" if no gate needed it
}

// Gates judges every gate, in the order in which they are shown.
func Gates(f Facts) []Gate {
	return []Gate{patchGate(f), claimsGate(f), coverageGate(f), baseGate(f), votesGate(f), approvalGate(f), testsGate(f)}
}

// Appliable reports whether nothing stands between a proposal and its
// application.
func Appliable(gates []Gate) bool {
	return !slices.ContainsFunc(gates, func(g Gate) bool { return g.Status != "passed" && g.Status != "not_applicable" })
}

// Fences returns the claims that the application rests on.
func Fences(f Facts) (out []events.Fence) {
	p := f.Proposal
	for _, id := range p.Current().Resources {
		r, err := ParseResource(id)
		if err != nil {
			continue
		}
		if c, _, ok := f.Claims.Backing(r, p.Authors(), p.Current(), f.Now); ok {
			out = append(out, events.Fence{Claim: c.ID, Resource: id, Fence: c.Fence})
		}
	}
	return out
}

// EffectiveRisk is the higher of the author's word and policy's.
func EffectiveRisk(p Proposal, pol policy.Policy) (risk, why string) {
	if path, glob := pol.HighPath(touched(p.Current())); path != "" {
		return HigherRisk(p.Current().Risk, "high"), fmt.Sprintf("%s matches the high-risk path %s", path, glob)
	}
	return HigherRisk(p.Current().Risk, p.Risk), "as the author said"
}

func touched(r Revision) []string {
	var paths []string
	for _, s := range r.Base.Paths {
		paths = append(paths, s.Path)
	}
	return paths
}

func patchGate(f Facts) Gate {
	g := Gate{Gate: "patch", Status: "passed", Because: []string{"the patch parses, its paths are safe and it fits the tree"}}
	if r := f.Patch.Refused; r != nil {
		g.Status, g.Because = "failed", []string{r.Code + ": " + r.Detail}
		g.Needs = []string{"an author attaches a revision that fits"}
		g.Next = slices.Clip(r.Next)
		if said := f.Patch.Rebase.Sentence(); said != "" {
			g.Because = append(g.Because, said)
		}
		g.Next = append(g.Next, f.Patch.Rebase.step(f.Proposal))
	}
	return g
}

func attach(p Proposal, why string) fault.Step {
	if p.Compensates != "" { // it takes no patch of anybody's
		return fault.Step{Op: "proposal.withdraw", Args: map[string]any{"proposal_id": p.ID}, Who: p.Author, Why: "ask transaction.compensate for " + p.Compensates + " again then"}
	}
	return fault.Step{Op: "proposal.attach_patch", Args: map[string]any{"proposal_id": p.ID, "expected_revision": p.Current().Number}, Who: p.Author, Why: why}
}

func claimsGate(f Facts) Gate {
	g := Gate{Gate: "claims", Status: "passed"}
	p := f.Proposal
	for _, id := range p.Current().Resources {
		r, err := ParseResource(id)
		if err != nil {
			g.Status, g.Because = "error", append(g.Because, err.Error())
			continue
		}
		c, stale, ok := f.Claims.Backing(r, p.Authors(), p.Current(), f.Now)
		if ok && stale == "" {
			g.Because = append(g.Because, fmt.Sprintf("%s is held by %s as %s until %s", id, c.Holder, c.Type, c.Expires.UTC().Format(time.RFC3339)))
			continue
		}
		g.Status = "failed"
		if ok {
			g.outdated(c, id, stale)
			continue
		}
		if c, ok := f.Claims.Against(r, p.Authors(), f.Now); ok {
			g.Because = append(g.Because, fmt.Sprintf("%s is held by %s, who is no author, until %s", id, c.Holder, c.Expires.UTC().Format(time.RFC3339)))
		} else {
			g.Because = append(g.Because, fmt.Sprintf("no author holds a live write or exclusive claim on %s", id))
		}
		g.Needs = append(g.Needs, "an author claims "+id)
		g.Next = append(g.Next, fault.Step{Op: "resource.claim", Args: map[string]any{"resource_id": id, "claim_type": "write"}, Who: p.Author, Why: "a change needs a claim on what it touches"})
	}
	return g
}

// outdated adds that a claim is stale for the revision, and how to go on: its
// holder claims again, and so says that the change was seen, or an author
// attaches a revision that was made on it.
func (g *Gate) outdated(c Claim, id, why string) {
	g.Because = append(g.Because, fmt.Sprintf("the claim of %s on %s is stale: %s", c.Holder, c.Resource.ID(), why))
	g.Needs = append(g.Needs, fmt.Sprintf("%s looks at what changed and claims %s again, or attaches a revision made on it", c.Holder, id))
	g.Next = append(g.Next, fault.Step{Op: "resource.claim", Args: map[string]any{"resource_id": c.Resource.ID(), "claim_type": c.Type}, Who: c.Holder, Why: "a claim made again rests on what lies there now"})
}

func coverageGate(f Facts) Gate {
	g := Gate{Gate: "coverage", Status: "passed", Because: []string{"every touched path lies in a resource of the revision"}}
	r := f.Proposal.Current()
	for _, path := range touched(r) {
		if !slices.ContainsFunc(r.Resources, func(id string) bool {
			res, err := ParseResource(id)
			return err == nil && res.Contains(path)
		}) {
			if g.Status == "passed" {
				g.Status, g.Because = "failed", nil
			}
			g.Because = append(g.Because, path+" lies in no resource of the revision")
		}
	}
	if g.Status == "failed" {
		g.Needs = []string{"an author attaches a revision whose affected_resources cover every touched path"}
		g.Next = []fault.Step{attach(f.Proposal, "name resources that cover the paths")}
	}
	return g
}

func baseGate(f Facts) Gate {
	if !f.Patch.Compared {
		return Gate{Gate: "base", Status: "skipped", Because: []string{"the paths were not compared: see gate patch"}}
	}
	if len(f.Patch.Moved) == 0 && len(f.Patch.Dirty) > 0 {
		return dirtyGate(f)
	}
	if len(f.Patch.Moved) == 0 {
		return Gate{Gate: "base", Status: "passed", Because: []string{"every touched path is as it was when the revision was attached"}}
	}
	return Gate{Gate: "base", Status: "failed",
		Because: []string{"these paths have changed since the revision was attached: " + strings.Join(f.Patch.Moved, ", "), f.Patch.Rebase.Sentence()},
		Needs:   []string{"an author attaches a revision made on the tree as it is now"},
		Next:    []fault.Step{f.Patch.Rebase.step(f.Proposal)}}
}

// dirtyGate is the base gate's answer where the base stands and somebody's work
// in it is not committed: the commit would take it along, or overwrite it.
func dirtyGate(f Facts) Gate {
	return Gate{Gate: "base", Status: "failed",
		Because: []string{"state.dirty: these paths, or the .gitattributes that speak of them, have changes in the work tree or the index that are not committed: " + strings.Join(f.Patch.Dirty, ", ")},
		Needs:   []string{"whoever made the changes commits, stashes or takes them back; after a commit an author attaches a revision made on it"},
		Next: []fault.Step{{Op: "patch.validate", Args: map[string]any{"proposal_id": f.Proposal.ID}, Who: f.Proposal.Author,
			Why: "the paths are looked at again once nothing in them is uncommitted"}}}
}

func votesGate(f Facts) Gate {
	g := Gate{Gate: "votes", Status: "waiting"}
	p := f.Proposal
	approvals, objections, vetoes := tally(f, &g)
	switch {
	case vetoes > 0 || objections > f.Policy.Blockers:
		g.Status = "failed"
		g.Needs = append(g.Needs, "those who object vote again, on a revision that answers them")
		g.Next = append(g.Next, attach(p, "answer the objections"))
	case len(approvals) >= f.Policy.Approvals:
		g.Status = "passed"
	default:
		g.Because = append(g.Because, fmt.Sprintf("%d of %d needed approvals", len(approvals), f.Policy.Approvals))
		g.Needs = append(g.Needs, "an eligible reviewer who is no author approves: a person, or an agent of another owner")
		g.Next = append(g.Next, fault.Step{Op: "vote.cast", Args: map[string]any{"proposal_id": p.ID, "vote": "approve", "revision": p.Current().Number}, Who: "reviewer", Why: "the revision needs an approving vote"})
	}
	return g
}

// tally counts the newest vote of each voter. Approvals count on the newest
// revision only and once for each owner; objections stand until their voter
// votes again. The approvals are the votes' ids.
func tally(f Facts, g *Gate) (approvals []string, objections, vetoes int) {
	p := f.Proposal
	owners := map[string]bool{}
	for _, v := range currentVotes(p.Votes) {
		who, ok := f.Directory.Principals[v.Voter]
		note := fmt.Sprintf("%s voted %s on revision %d", who.Name, v.Choice, v.Revision)
		if why := p.Eligible(who, f.Directory); !ok || why != "" {
			g.Because = append(g.Because, note+", which does not count: "+why)
			continue
		}
		switch {
		case v.Choice == "veto":
			vetoes++
		case v.Choice == "revise" || v.Choice == "reject":
			objections++
		case v.Revision != p.Current().Number:
			note += ", which is stale"
		case v.Choice != "abstain" && !owners[f.Directory.OwnerOf(who)]:
			owners[f.Directory.OwnerOf(who)] = true
			approvals = append(approvals, v.Vote)
		case v.Choice != "abstain":
			note += ", which counts once with others of the same owner"
		}
		g.Because = append(g.Because, note)
	}
	return approvals, objections, vetoes
}

// currentVotes keeps the newest vote of each voter, in order of casting.
func currentVotes(all []events.VoteCast) (out []events.VoteCast) {
	for i, v := range all {
		if !slices.ContainsFunc(all[i+1:], func(o events.VoteCast) bool { return o.Voter == v.Voter }) {
			out = append(out, v)
		}
	}
	return out
}

func approvalGate(f Facts) Gate {
	p := f.Proposal
	risk, why := EffectiveRisk(p, f.Policy)
	g := Gate{Gate: "human_approval", Because: []string{fmt.Sprintf("the risk is %s: %s", risk, why)}}
	latest := decisions(p)
	approved, open := 0, ""
	for _, who := range slices.Sorted(maps.Keys(latest)) {
		d := latest[who]
		person := f.Directory.Principals[who]
		g.Because = append(g.Because, fmt.Sprintf("%s: %s on revision %d", person.Name, d.Verdict, d.Revision))
		switch {
		case person.Kind != auth.Human || slices.Contains(p.Authors(), who):
		case approves(p, d):
			approved++
		case d.Verdict == "rejected" || d.Verdict == "changes_requested":
			g.Status = "failed"
		}
	}
	for _, a := range p.Approvals {
		if a.Revision == p.Current().Number {
			open = a.ID
		}
	}
	switch {
	case g.Status == "failed":
		g.Needs = []string{"whoever refused decides again"}
	case approved > 0:
		g.Status = "passed"
	case !NeedsHuman(risk):
		g.Status = "not_applicable"
	default:
		g.Status = "waiting"
		g.Needs = []string{"a person who is no author approves the revision"}
		g.Next = approvalSteps(p, open)
	}
	return g
}

// decisions returns the newest decision of each person, whichever request it
// answers.
func decisions(p Proposal) map[string]events.ApprovalDecided {
	latest := map[string]events.ApprovalDecided{}
	for _, d := range p.Decisions {
		latest[d.By] = d
	}
	return latest
}

func approves(p Proposal, d events.ApprovalDecided) bool {
	return d.Verdict == "approved" && d.Revision == p.Current().Number
}

func approvalSteps(p Proposal, open string) []fault.Step {
	if open != "" {
		return []fault.Step{{Op: "approval.approve", Args: map[string]any{"approval_id": open}, Who: "person", Why: "the risk asks for a person's word"}}
	}
	return []fault.Step{{Op: "human.request_approval", Args: map[string]any{"proposal_id": p.ID, "subject": p.Title, "reason_md": "the risk asks for a person's word"}, Who: p.Author, Why: "nobody was asked yet about this revision"}}
}

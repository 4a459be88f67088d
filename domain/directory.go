package domain

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"roundtable/events"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
)

// MaxTokenLife bounds the life of a token.
const MaxTokenLife = 366 * 24 * time.Hour

// A Directory is everyone a server knows, with their roles and credentials.
type Directory struct {
	Principals map[string]auth.Principal // by id
	Names      map[string]string         // name → id
	Tokens     map[string]Token          // by id; revoked ones are gone
}

// A Token is a credential that was issued and not revoked.
type Token struct {
	Principal string
	Hash      string
	Expires   time.Time
	Scope     auth.Scope
}

// Clone returns a state that can be folded further without touching d.
func (d Directory) Clone() Directory {
	return Directory{maps.Clone(d.Principals), maps.Clone(d.Names), maps.Clone(d.Tokens)}
}

// Evolve returns d after e has happened. It changes d's maps in place: see Clone.
func (d Directory) Evolve(e events.Payload) Directory {
	if d.Principals == nil {
		d = Directory{map[string]auth.Principal{}, map[string]string{}, map[string]Token{}}
	}
	switch e := e.(type) {
	case events.PrincipalCreated:
		d.Principals[e.Principal] = auth.Principal{ID: e.Principal, Name: e.Name, Kind: auth.Kind(e.Kind), Owner: e.Owner, Vendor: e.Vendor, Model: e.Model}
		d.Names[e.Name] = e.Principal
	case events.RoleGranted:
		p := d.Principals[e.Principal]
		p.Grants = append(slices.Clip(p.Grants), auth.Grant{Workspace: e.Workspace, Role: auth.Role(e.Role)})
		d.Principals[e.Principal] = p
	case events.TokenIssued:
		d.Tokens[e.Token] = Token{e.Principal, e.Hash, e.ExpiresAt, auth.Scope(e.Scope)}
	case events.TokenRevoked:
		delete(d.Tokens, e.Token)
	default:
		foreign("directory", e)
	}
	return d
}

var principalName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// CheckPrincipalName checks the name of a principal, or of a team that stands
// in the field as an owner. It returns an invalid_field fault or nil.
func CheckPrincipalName(field, name string) error {
	if !principalName.MatchString(name) {
		return fault.Errorf(fault.Invalid, "invalid_field", "%s %.80q: letters, digits and . _ @ -, at most 64", field, name).At("/"+field, "not a name")
	}
	return nil
}

// Named returns the principal of this name, in whatever case. Of a history
// from before names were unique that way only the exact name will do where
// several differ in case alone.
func (d Directory) Named(name string) (auth.Principal, bool) {
	if id, ok := d.Names[name]; ok {
		return d.Principals[id], true
	}
	found := ""
	for have, id := range d.Names {
		if strings.EqualFold(have, name) {
			if found != "" {
				return auth.Principal{}, false
			}
			found = id
		}
	}
	return d.Principals[found], found != ""
}

// Get returns the principal of this id or name.
func (d Directory) Get(idOrName string) (auth.Principal, error) {
	if p, ok := d.Principals[idOrName]; ok {
		return p, nil
	}
	if p, ok := d.Named(idOrName); ok {
		return p, nil
	}
	return auth.Principal{}, fault.Errorf(fault.NotFound, "principal_not_found", "there is no principal %.80q", idOrName)
}

// OwnerOf names whoever p works for, the same for all that work for the same:
// the id of a principal if it is one, even one that became known after p did.
func (d Directory) OwnerOf(p auth.Principal) string {
	if _, ok := d.Principals[p.Owner]; ok {
		return p.Owner
	}
	if o, ok := d.Named(p.Owner); ok {
		return o.ID
	}
	return strings.ToLower(p.Owner)
}

// SameOwner reports whether a and b work for the same person or team, which
// wherever it matters makes them one voice.
func (d Directory) SameOwner(a, b auth.Principal) bool { return d.OwnerOf(a) == d.OwnerOf(b) }

// Create makes a principal with its roles, on behalf of by, who can give only
// in workspaces they are admin of.
func (d Directory) Create(e events.PrincipalCreated, roles []auth.Grant, by auth.Principal, known Workspaces) ([]events.Payload, error) {
	if err := oneOf("kind", e.Kind, string(auth.Human), string(auth.Agent), string(auth.Service)); err != nil {
		return nil, err
	}
	if err := CheckPrincipalName("name", e.Name); err != nil {
		return nil, err
	}
	if p, taken := d.Named(e.Name); taken {
		return nil, fault.Errorf(fault.Conflict, "name_taken", "principal %s is named %s already; names that differ in case alone are taken for one another", p.ID, p.Name).With("principal_id", p.ID)
	}
	switch {
	case e.Owner == "" && e.Kind == string(auth.Human):
		e.Owner = e.Principal
	case e.Owner == "":
		return nil, fault.Errorf(fault.Invalid, "missing_field", "an %s needs an owner: the person or team it works for", e.Kind).At("/owner", "required for agents and services")
	}
	if p, ok := d.Named(e.Owner); ok {
		e.Owner = p.ID // a person's name stands for the person
	} else if err := CheckPrincipalName("owner", e.Owner); err != nil {
		return nil, err
	}
	if err := firstOf(line("vendor", e.Vendor, MaxTitle, false), line("model", e.Model, MaxTitle, false)); err != nil {
		return nil, err
	}
	out := []events.Payload{e}
	for _, g := range roles {
		if err := d.mayGrant(g, e, by, known); err != nil {
			return nil, err
		}
		out = append(out, events.RoleGranted{Principal: e.Principal, Workspace: g.Workspace, Role: string(g.Role)})
	}
	return out, nil
}

func (d Directory) mayGrant(g auth.Grant, e events.PrincipalCreated, by auth.Principal, known Workspaces) error {
	switch _, exists := known.ByID[g.Workspace]; {
	case !slices.Contains(auth.Roles, g.Role):
		return fault.Errorf(fault.Invalid, "invalid_field", "role %q is not one of the roles", g.Role).At("/roles", "unknown role "+string(g.Role))
	case !exists && g.Workspace != auth.AllWorkspaces:
		return fault.Errorf(fault.NotFound, "workspace_not_found", "there is no workspace %s", g.Workspace).At("/roles", "unknown workspace")
	case by.ID != events.System && !by.Has(g.Workspace, auth.Admin), g.Workspace == auth.AllWorkspaces && by.ID != events.System && !by.Everywhere(auth.Admin):
		return fault.Errorf(fault.Forbidden, "forbidden", "roles in %s are given by its admins", g.Workspace)
	case g.Role == auth.Override && e.Kind != string(auth.Human):
		return fault.Errorf(fault.Invalid, "invalid_field", "override is for people").At("/roles", "override is for people")
	}
	return nil
}

// Issue makes a credential of a principal, on behalf of by: an admin of every
// workspace in which the principal has a role.
func (d Directory) Issue(e events.TokenIssued, by auth.Principal, now time.Time) ([]events.Payload, error) {
	p, ok := d.Principals[e.Principal]
	if !ok {
		return nil, fault.Errorf(fault.NotFound, "principal_not_found", "there is no principal %s", e.Principal)
	}
	if life := e.ExpiresAt.Sub(now); life < time.Second || life > MaxTokenLife {
		return nil, fault.Errorf(fault.Invalid, "invalid_field", "expires_in_seconds is from 1 to %d", int(MaxTokenLife.Seconds())).At("/expires_in_seconds", "out of bounds")
	}
	if err := governs(by, p); err != nil {
		return nil, err
	}
	return []events.Payload{e}, nil
}

// Revoke ends a credential, on behalf of by.
func (d Directory) Revoke(token string, by auth.Principal) ([]events.Payload, error) {
	t, ok := d.Tokens[token]
	if !ok {
		return nil, fault.Errorf(fault.NotFound, "token_not_found", "there is no token %s that is not revoked", token)
	}
	if err := governs(by, d.Principals[t.Principal]); err != nil {
		return nil, err
	}
	return []events.Payload{events.TokenRevoked{Token: token}}, nil
}

func governs(by, p auth.Principal) error {
	if by.ID == events.System || by.Everywhere(auth.Admin) {
		return nil
	}
	for _, ws := range p.Workspaces() {
		if ws == auth.AllWorkspaces || !by.Has(ws, auth.Admin) {
			return fault.Errorf(fault.Forbidden, "forbidden", "%s has roles in %s, which you are not an admin of", p.Name, ws)
		}
	}
	return nil
}

// Authenticate returns whoever the credential stands for.
func (d Directory) Authenticate(token string, now time.Time) (auth.Principal, error) {
	id := auth.TokenID(token)
	t, ok := d.Tokens[id]
	switch {
	case !ok || !auth.SameToken(token, t.Hash):
		return auth.Principal{}, fault.Errorf(fault.Unauthenticated, "invalid_token", "the token is unknown or was revoked")
	case !t.Expires.After(now):
		return auth.Principal{}, fault.Errorf(fault.Unauthenticated, "token_expired", "the token ended at %s", t.Expires.UTC().Format(time.RFC3339))
	}
	p := d.Principals[t.Principal]
	p.Token, p.Scope, p.Ends = id, t.Scope, t.Expires
	return p, nil
}

// Code names the state's JSON, for snapshots.
func (Directory) Code() string { return "directory.1" }

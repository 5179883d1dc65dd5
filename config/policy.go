package config

// Policy is what agents may do beyond what the tools' filters say. It holds for
// every tool and for the raw tool, whatever spelling a call uses.
type Policy struct {
	// Bind fixes the owner, and the repository, of every call.
	Bind Bind `yaml:"bind"`
	// Repos are the repositories that calls may name and results may show,
	// as globs on owner/name, in any case: acme/*, acme/web-*.
	Repos Patterns `yaml:"repos"`
	// Branches are those that agents may write to.
	Branches BranchRules `yaml:"branches"`
	// Paths are the files that agents may write, as globs where ** crosses
	// folders: docs/**. Files of workflows (.gitea/workflows/**) run code.
	Paths Patterns `yaml:"paths"`
	// WriteToken is a Gitea token that writes run with, in place of the
	// identity's own. Empty: none.
	WriteToken Secret `yaml:"write_token" length:"1 4096" header:"true" example:"${GITEA_WRITE_TOKEN}"`
	// Budgets bound what one write may carry.
	Budgets Budgets `yaml:"budgets"`
	// Confirm asks a person before calls run.
	Confirm Confirm `yaml:"confirm"`
}

// Bind fixes arguments. They vanish from the tools' schemas, and Aegis fills
// them in.
type Bind struct {
	// Owner is the user or organization of all repositories. Empty: any.
	Owner string `yaml:"owner" length:"0 100" example:"acme"`
	// Repo is the one repository; needs owner. Empty: all of the owner.
	Repo string `yaml:"repo" length:"0 100" example:"web"`
}

// Patterns are globs to allow and to deny. Deny wins. Without allow everything
// is allowed that deny does not name.
type Patterns struct {
	// Allow are globs of what is allowed. Empty: everything.
	Allow []string `yaml:"allow" length:"1 300" example:"acme/*"`
	// Deny are globs of what is not.
	Deny []string `yaml:"deny" length:"1 300" example:"acme/secret-*"`
}

// Empty reports whether there is no rule.
func (p Patterns) Empty() bool { return len(p.Allow)+len(p.Deny) == 0 }

// BranchRules are the branches and tags that agents may write to.
type BranchRules struct {
	// Allow are globs of branches, where ** crosses slashes: ai/**. Empty:
	// every branch.
	Allow []string `yaml:"allow" length:"1 300" example:"ai/**"`
	// Deny are globs of branches that stay closed.
	Deny []string `yaml:"deny" length:"1 300" example:"release/**"`
	// ProtectDefault closes the default branch of every repository. Default
	// false.
	ProtectDefault bool `yaml:"protect_default"`
}

// Empty reports whether there is no rule.
func (b BranchRules) Empty() bool {
	return len(b.Allow)+len(b.Deny) == 0 && !b.ProtectDefault
}

// Budgets bound what one write may carry. 0 is no bound of its own.
type Budgets struct {
	// MaxFileBytes bounds one file, decoded. 0 to 256MiB, default 0.
	MaxFileBytes ByteSize `yaml:"max_file_bytes" range:"0 256MiB"`
	// MaxBodyBytes bounds the text of one issue, comment, review or release.
	// 0 to 256MiB, default 0.
	MaxBodyBytes ByteSize `yaml:"max_body_bytes" range:"0 256MiB"`
	// MaxBatch bounds the items of one list, such as the files of one commit.
	// 0 to 10000, default 0.
	MaxBatch int `yaml:"max_batch" range:"0 10000"`
	// WritesPerHour bounds the writes of one identity. 0 to 1000000, default 0.
	WritesPerHour int `yaml:"writes_per_hour" range:"0 1000000"`
}

// Confirm asks a person before a call runs.
type Confirm struct {
	// Tools are the risk classes (R2, R3, R4), tools or globs whose calls ask.
	// Empty: none.
	Tools []string `yaml:"tools" pattern:"^[A-Za-z0-9_.*?-]{1,100}$" says:"R2, R3, R4, or a name or glob of tools" example:"R3"`
	// Fallback is what happens with clients that cannot ask their user: "deny"
	// refuses the call, "token" answers with confirmation_required, and the
	// person reads a one-time code on /account. Default deny.
	Fallback string `yaml:"fallback" enum:"deny token"`
	// TTL is how long a question and a code stay valid. 30s to 1h, default 5m.
	TTL Duration `yaml:"ttl" range:"30s 1h"`
}

// Team is one named endpoint, /mcp/<name>, and its rules. What a team does not
// set, it takes from the top of the file; a list replaces the one there.
type Team struct {
	// Members says who may use the endpoint. Required.
	Members Members `yaml:"members"`
	// Tools selects and shapes what clients see.
	Tools Tools `yaml:"tools"`
	// Results bounds and shapes what calls return.
	Results Results `yaml:"results"`
	// Masking keeps secrets from leaving.
	Masking Masking `yaml:"masking"`
	// Limits bounds how much callers may ask for.
	Limits TeamLimits `yaml:"limits"`
	// Policy is what agents may do beyond that.
	Policy Policy `yaml:"policy"`
}

// TeamLimits are the limits that a team may set for itself.
type TeamLimits struct {
	// Identity counts the calls of each identity at this endpoint.
	Identity Limit `yaml:"identity"`
	// Team counts the calls of all identities of the team together.
	Team Limit `yaml:"team"`
	// Read counts the calls of each identity that change nothing.
	Read Limit `yaml:"read"`
	// Write counts the calls of each identity that change something and can be
	// undone.
	Write Limit `yaml:"write"`
	// Destructive counts the calls of each identity that delete, are hard to
	// undo, or administer the instance (risk R3 and R4).
	Destructive Limit `yaml:"destructive"`
	// Tools counts the calls of each identity by tool, for tools named here.
	Tools map[string]Limit `yaml:"tools"`
}

// Members says who may use an endpoint.
type Members struct {
	// Everyone admits all identities that Aegis knows. Default false.
	Everyone bool `yaml:"everyone"`
	// Tokens are names of auth.tokens.
	Tokens []string `yaml:"tokens" pattern:"^[A-Za-z0-9._-]{1,64}$" says:"the name of a token in auth.tokens" example:"alice"`
	// Logins are Gitea user names.
	Logins []string `yaml:"logins" length:"1 100" example:"alice"`
	// Organizations stand for their members.
	Organizations []string `yaml:"organizations" length:"1 100" example:"acme"`
	// Teams of organizations, written org/team, stand for their members.
	Teams []string `yaml:"teams" pattern:"^[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_. -]{1,255}$" says:"an organization and a team of it, such as acme/developers" example:"acme/developers"`
}

// Empty reports whether no list admits anyone.
func (m Members) Empty() bool {
	return !m.Everyone && len(m.Tokens)+len(m.Logins)+len(m.Organizations)+len(m.Teams) == 0
}

package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"aegis/config"
)

// GiteaOptions say what to look at behind Aegis.
type GiteaOptions struct {
	Gitea Gitea
	// Auth has the tokens that calls run with, which are sent to Gitea alone and never
	// reported, and says whether people sign in with Gitea.
	Auth config.Auth
	// Needed counts the enabled tools by the scope that they need.
	Needed map[string]int
	// CheckSignIn looks at the OAuth application; may be nil.
	CheckSignIn func(context.Context) (problems, warnings []error)
}

// ExamineGitea makes the checks of the server behind Aegis.
func ExamineGitea(ctx context.Context, o GiteaOptions, report func(Finding)) {
	x := &examination{report: report}
	// Taken before the request, since the server's clock is read while it is under way.
	before := time.Now()
	facts, err := o.Gitea.Ask(ctx, "")
	if err != nil {
		x.add(Failure, "gitea", err.Error(),
			"start Gitea, or correct gitea.url; a private certificate needs gitea.ca_file")
		return
	}
	ok := "Gitea " + facts.Version + " answers"
	if facts.Hidden {
		ok = "Gitea answers, and tells its version to signed-in users only"
	}
	x.judge("gitea", ok, []outcome{
		// Scopes of OAuth applications came with 1.23.
		{Older(facts.Version, 1, 23) && o.Auth.OAuth.Enabled, Failure,
			"Gitea " + facts.Version + " gives an application full access whatever is asked for",
			"update Gitea to 1.23 or newer, or switch auth.oauth off"},
	})
	x.skew("gitea clock", "Gitea", facts.Date, before)
	x.tokens(ctx, o)
	x.giteaSlash(ctx, o)
	if o.Auth.OAuth.Enabled && o.CheckSignIn != nil {
		x.signIn(ctx, o)
	}
}

// tokens checks the Gitea token of each static token: whose it is, and its scopes
// against those that the enabled tools need.
func (x *examination) tokens(ctx context.Context, o GiteaOptions) {
	for _, t := range o.Auth.Tokens {
		name := "token " + t.Name
		u, err := o.Gitea.Token(ctx, t.GiteaToken.Reveal())
		missing := Missing(u.Scopes, slices.Sorted(maps.Keys(o.Needed)))
		if err != nil {
			x.add(Failure, name, err.Error(), "put a valid token into gitea_token of "+t.Name)
			continue
		}
		// A tool needs one or more scopes, so the numbers cannot be added; the greatest
		// is a lower bound.
		tools := 0
		for _, s := range missing {
			tools = max(tools, o.Needed[s])
		}
		x.judge(name, "the Gitea token is "+u.Login+"'s and has what the enabled tools need", []outcome{
			{u.Login == "", Failure, "the Gitea token lacks read:user, without which Aegis cannot learn whose it is",
				"make a token in Gitea with read:user and the scopes of the tools that it is for"},
			{t.AllowSudo && !u.Admin, Failure, "allow_sudo is set, and " + u.Login + " is no administrator of Gitea",
				"use an administrator's token, or take allow_sudo away"},
			{len(missing) > 0, Warning, fmt.Sprintf(
				"the Gitea token of %s lacks %s: at least %d of the enabled tools will answer forbidden",
				u.Login, strings.Join(missing, ", "), tools),
				"make a token with these scopes in Gitea (Settings, Applications), or enable fewer tools"},
		})
	}
}

// giteaSlash is encodedSlash for the way from Aegis to Gitea.
func (x *examination) giteaSlash(ctx context.Context, o GiteaOptions) {
	token := ""
	if len(o.Auth.Tokens) > 0 {
		token = o.Auth.Tokens[0].GiteaToken.Reveal()
	}
	survives, err := o.Gitea.Slash(ctx, token)
	if err != nil {
		x.add(Skipped, "gitea slash", "no answer: "+err.Error(), "")
		return
	}
	// Branches with a slash in their names are common, and this fault shows with them
	// alone.
	x.judge("gitea slash", "%2F reaches Gitea as it is", []outcome{{!survives, Failure,
		"a proxy between Aegis and Gitea decodes or refuses %2F: " +
			"branches and files with / in their names cannot be reached",
		x.fix("slash") + "\nor let gitea.url lead to Gitea directly"}})
}

// signIn reports what the server's own check of the OAuth application finds.
func (x *examination) signIn(ctx context.Context, o GiteaOptions) {
	problems, warnings := o.CheckSignIn(ctx)
	// One text for all of them: each message says which setting is meant.
	const fix = "docs/oauth.md says how the application must be"
	for _, p := range problems {
		x.add(Failure, "sign-in", p.Error(), fix)
	}
	for _, w := range warnings {
		x.add(Warning, "sign-in", w.Error(), fix)
	}
	if len(problems)+len(warnings) == 0 {
		x.ok("sign-in", "Gitea has the OAuth application, confidential, with the right secret and redirect URI")
	}
}

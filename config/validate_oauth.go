package config

import (
	"fmt"
	"net/url"
	"strings"
)

// oauth checks what the tags of OAuth and Store cannot say.
func (v *validator) oauth() {
	o := v.c.Auth.OAuth
	if o.Enabled {
		v.oauthNeeds(o)
	}
	v.scopes(o)
	if o.MaxTTL != 0 && o.MaxTTL < o.AccessTTL {
		v.add(ruleOAuth, "auth.oauth.max_ttl", "is shorter than access_ttl, so that no grant could be refreshed", "make it longer, or 0s for no end")
	}
	ids := map[string]int{}
	for i, c := range o.Clients {
		key := fmt.Sprintf("auth.oauth.clients[%d]", i)
		if j, twice := firstUse(ids, c.ID, i); twice {
			v.add(ruleOAuthClient, key+".id", fmt.Sprintf("is also the id of auth.oauth.clients[%d]", j), "give each client its own id")
		}
		if len(c.RedirectURIs) == 0 {
			v.add(ruleOAuthClient, key+".redirect_uris", "lists none", "list where the client may be sent back to, such as http://127.0.0.1/callback")
		}
		for j, uri := range c.RedirectURIs {
			v.redirect(uri, fmt.Sprintf("%s.redirect_uris[%d]", key, j))
		}
	}
	v.store()
}

// oauthNeeds reports what is missing once OAuth is on.
func (v *validator) oauthNeeds(o OAuth) {
	const where = "it is shown in Gitea under Settings, Applications; docs/oauth.md has each step"
	if o.ClientID == "" {
		v.add(ruleOAuth, "auth.oauth.client_id", "is required while auth.oauth.enabled is true", "copy it from the OAuth application: "+where)
	}
	if o.ClientSecret.IsZero() {
		v.add(ruleOAuth, "auth.oauth.client_secret", "is required while auth.oauth.enabled is true", "copy it from the OAuth application: "+where)
	}
	host, err := listenHost(v.c.Listen)
	if err == nil && v.c.PublicURL == nil && !loopback(host) {
		v.add(ruleOAuth, "public_url", "is required while auth.oauth.enabled is true: clients and Gitea send people's browsers there", "set it, for example to https://aegis.example.org")
	}
}

// scopes holds Gitea to what was asked for: it grants everything for an empty
// list.
func (v *validator) scopes(o OAuth) {
	if len(o.Scopes) == 0 {
		v.add(ruleScope, "auth.oauth.scopes", "is empty, and Gitea would grant everything", "list what agents need, such as [write:repository, write:issue, read:user]")
	}
	for i, s := range o.DefaultScopes {
		if scopePattern(s) && !covered(s, o.Scopes) {
			v.add(ruleScope, fmt.Sprintf("auth.oauth.default_scopes[%d]", i), quote(s)+" is not covered by auth.oauth.scopes", "add it there, or remove it here")
		}
	}
}

func scopePattern(s string) bool {
	level, category, found := strings.Cut(s, ":")
	return found && category != "" && (level == "read" || level == "write")
}

// covered reports whether scopes hold s, or its write form.
func covered(s string, scopes []string) bool {
	_, category, _ := strings.Cut(s, ":")
	for _, have := range scopes {
		if have == s || have == "write:"+category {
			return true
		}
	}
	return false
}

// redirect refuses redirect URIs that would hand codes to anybody or run as
// script in a browser.
func (v *validator) redirect(uri, key string) {
	u, err := url.Parse(uri)
	switch {
	case err != nil || u.Scheme == "" || u.Opaque != "" || strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }):
		v.add(ruleOAuthClient, key, "is not an absolute URI", "write it like https://app.example.org/callback or http://127.0.0.1/callback")
	case u.Fragment != "" || strings.HasSuffix(uri, "#"):
		v.add(ruleOAuthClient, key, "has a fragment", "end it before the #")
	case u.User != nil:
		v.add(ruleOAuthClient, key, "holds a user name or password", "remove the part before @")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		v.add(ruleOAuthClient, key, "is plain http on a host that is not loopback; codes would cross the network readable", "use https")
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host == "":
		v.add(ruleOAuthClient, key, "has no host", "write it like https://app.example.org/callback")
	case u.Scheme == "javascript" || u.Scheme == "data" || u.Scheme == "file" || u.Scheme == "vbscript" || u.Scheme == "about" || u.Scheme == "blob":
		v.add(ruleOAuthClient, key, "has a scheme that browsers run or open themselves", "use https, or http on a loopback host")
	}
}

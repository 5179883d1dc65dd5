package config

import (
	"net/url"
	"slices"
	"strings"
)

// oauth checks what the tags of OAuth and Store cannot say.
func (v *validator) oauth() {
	o := v.c.Auth.OAuth
	if o.Enabled {
		v.oauthNeeds(o)
	}
	v.scopes(o)
	v.addIf(o.MaxTTL != 0 && o.MaxTTL < o.AccessTTL, "auth.oauth.max_ttl",
		"is shorter than access_ttl, so that no grant could be refreshed", "make it longer, or 0s for no end")
	for i, c := range o.Clients {
		key := item("auth.oauth.clients", i) + ".redirect_uris"
		v.addIf(len(c.RedirectURIs) == 0, key, "lists none",
			"list where the client may be sent back to, such as http://127.0.0.1/callback")
		for j, uri := range c.RedirectURIs {
			v.redirect(uri, item(key, j))
		}
	}
	unique(v, "auth.oauth.clients", "id", o.Clients, func(c OAuthClient) string { return c.ID },
		"give each client its own id")
	v.store()
}

// oauthNeeds reports what is missing once OAuth is on.
func (v *validator) oauthNeeds(o OAuth) {
	const (
		needed = "is required while auth.oauth.enabled is true"
		where  = "copy it from the OAuth application: it is shown in Gitea under Settings, Applications; " +
			"docs/oauth.md has each step"
	)
	v.addIf(o.ClientID == "", "auth.oauth.client_id", needed, where)
	v.addIf(o.ClientSecret.IsZero(), "auth.oauth.client_secret", needed, where)
	host, err := listenHost(v.c.Listen)
	v.addIf(err == nil && v.c.PublicURL == nil && !loopback(host), "public_url",
		needed+": clients and Gitea send people's browsers there", "set it, for example to https://aegis.example.org")
}

// scopes refuses an empty list, for which Gitea would grant everything, and defaults
// beyond the list.
func (v *validator) scopes(o OAuth) {
	v.addIf(len(o.Scopes) == 0, "auth.oauth.scopes", "is empty, and Gitea would grant everything",
		"list what agents need, such as [write:repository, write:issue, read:user]")
	for i, s := range o.DefaultScopes {
		// Where the pattern does not match, that was reported. write includes read.
		level, category, _ := strings.Cut(s, ":")
		known := (level == "read" || level == "write") && category != ""
		v.addIf(known && !slices.Contains(o.Scopes, s) && !slices.Contains(o.Scopes, "write:"+category),
			item("auth.oauth.default_scopes", i),
			quote(s)+" is not covered by auth.oauth.scopes", "add it there, or remove it here")
	}
}

// browserSchemes run as script in a browser, or show what is on its computer.
var browserSchemes = []string{"javascript", "data", "file", "vbscript", "about", "blob"}

// redirect refuses redirect URIs that would hand codes to anybody or run as
// script in a browser.
func (v *validator) redirect(uri, key string) {
	refuse := func(what, do string) { v.add(key, what, do) }
	unclean := func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }
	u, err := url.Parse(uri)
	switch {
	case err != nil || u.Scheme == "" || u.Opaque != "" || strings.ContainsFunc(uri, unclean):
		refuse("is not an absolute URI", "write it like https://app.example.org/callback or http://127.0.0.1/callback")
	case u.Fragment != "" || strings.HasSuffix(uri, "#"):
		refuse("has a fragment", "end it before the #")
	case u.User != nil:
		refuse("holds a user name or password", "remove the part before @")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		refuse("is plain http on a host that is not loopback; codes would cross the network readable", "use https")
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host == "":
		refuse("has no host", "write it like https://app.example.org/callback")
	case slices.Contains(browserSchemes, u.Scheme):
		refuse("has a scheme that browsers run or open themselves", "use https, or http on a loopback host")
	}
}

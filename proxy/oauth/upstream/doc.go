// Package upstream is the Gitea leg of Aegis' authorization server: it signs
// people in through Gitea's OAuth provider and keeps one credential for each of
// them, sealed in the store and refreshed without their noticing.
//
// Five habits of Gitea shape it.
//
// A word that is no scope of Gitea's, or no word at all, grants everything. The
// scopes are therefore a fixed list out of the configuration, held against
// Gitea's own, and what was really granted is asked for (RFC 7662) before a
// credential is kept.
//
// Gitea has one grant for a user and an application, and an older one is used
// again with its older scopes whatever is asked for now. A grant that is
// narrower or wider than the configuration is refused with a text that tells the
// person where to revoke it.
//
// Users can be renamed, and a name can pass to somebody else. Records hang on
// Gitea's number of the user.
//
// With INVALIDATE_REFRESH_TOKENS a refresh token works once, and every answer of
// the token endpoint ends all refresh tokens before it. A refresh is therefore
// done by one goroutine of one replica at a time (single flight within the
// process, a lease in the store between processes), is not given up when the
// request that needed it is, is stored before it is used, and gives way to a
// newer answer. Of two answers the one with the larger counter is alive.
//
// An outage proves nothing. Only Gitea's own word that a grant or a refresh
// token is dead ends a credential; see classify.
package upstream

// Package client knows the OAuth clients: those that the configuration names,
// those that registered themselves (RFC 7591), and those that a metadata
// document describes (OAuth Client ID Metadata Document).
//
// Nothing that a stranger sends makes this package keep state without a bound. A
// registered client's id holds what it registered, authenticated by a key of the
// ring, so registration stores nothing; documents are kept in a cache of fixed
// size, and in the store only for clients that a person has approved.
//
// Documents are fetched from public addresses alone: every address that a name
// resolves to is checked before one of them is dialled, redirects are not
// followed, and no proxy of the environment is used.
package client

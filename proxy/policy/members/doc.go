// Package members decides who may use a team's endpoint: by static token, by
// login, or by membership in an organization or a team of Gitea, which is asked
// with the caller's own credential and remembered for minutes.
package members

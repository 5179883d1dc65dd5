package server

import (
	"net/http"
	"sync/atomic"

	"aegis/config"
	"aegis/proxy/catalog"
	"aegis/proxy/gitea"
	"aegis/proxy/mask/match"
	"aegis/proxy/policy/members"
	"aegis/proxy/telemetry"
)

// upstreams are the ways to Gitea and what was learned over them. A generation takes on
// those of the one before it, with the open connections, unless settings of Gitea change.
type upstreams struct {
	client *gitea.Client
	pass   *http.Transport // for what is passed through
	// signIn is for the OAuth application: people who sign in must not wait for connections
	// that calls have in use.
	signIn *http.Transport
	people *members.Directory
	ready  *gitea.Readiness
}

// routes are the operations of the live server, once they are known. They are kept across
// generations for as long as Gitea's address is the same.
type routes struct {
	known atomic.Pointer[catalog.Routes]
}

// newUpstreams makes the client of Gitea and what needs it. No connection is made
// before it is needed.
func (p *Process) newUpstreams(cfg *config.Config, log Log) (*upstreams, error) {
	p.building("gitea")
	client, err := gitea.New(cfg.Gitea, gitea.Limits{
		MaxBinaryBytes: int64(cfg.Results.MaxBinaryBytes), Version: p.version, Around: telemetry.Upstream,
		Scrub: match.Credentials, // in every masking mode: Gitea's errors may repeat what it was sent
	}, log.Logger)
	if err != nil {
		return nil, err
	}
	pass, err := gitea.PassTransport(cfg.Gitea)
	if err != nil {
		return nil, err
	}
	// It is kept with the connections: what it knows of memberships has cost requests.
	people := members.NewDirectory(client, p.now)
	if cfg.Store.Shared() {
		people.OnLoss(p.replica.Revoke)
	}
	return &upstreams{
		client: client, pass: pass, signIn: pass.Clone(), people: people, // Clone: connections are not shared
		ready: client.Readiness(p.now),
	}, nil
}

// close closes the connections that nothing uses; those in use when they are done.
func (u *upstreams) close() {
	u.client.Close()
	u.pass.CloseIdleConnections()
	u.signIn.CloseIdleConnections()
}

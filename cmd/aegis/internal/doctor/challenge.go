package doctor

import (
	"context"
	"net/http"
	"strings"
)

// challengeName is spelled as [http.Header] keeps it.
const challengeName = "Www-Authenticate"

// challenges sends requests without a token to every endpoint, by each method that a
// client may begin with: clients learn from the 401 where to sign in (RFC 9728 section
// 5). Some clients begin with GET, to open a stream, and some proxies treat HEAD
// otherwise.
func (x *examination) challenges(ctx context.Context) {
	good := true
	for _, path := range x.o.Endpoints {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodHead} {
			good = good && x.challenge(ctx, ask{method: method, path: path})
		}
	}
	if good {
		x.ok("challenge", "POST, GET and HEAD without a token are 401 with a challenge")
	}
}

// challenge checks the answer to one request without a token.
func (x *examination) challenge(ctx context.Context, a ask) bool {
	at := a.method + " " + a.path
	got := x.reply(ctx, "challenge", at+": no answer: ", seeProxyLog, a)
	if got == nil {
		return false
	}
	values, value := got.header.Values(challengeName), got.header.Get(challengeName)
	// A reference that answers otherwise has no challenge to compare with.
	want := x.expected(ctx, a)
	differs := want != nil && want.status == http.StatusUnauthorized && want.header.Get(challengeName) != value
	// Anything but 401 has the client go on without signing in.
	open := got.status != http.StatusUnauthorized
	// The proxy is judged before the configuration: what does not come from Aegis says
	// nothing of it.
	return x.passes("challenge", []outcome{
		{open && !got.byAegis(), Failure, at + " must be 401 and does not reach Aegis: " + got.what(), x.fix("path")},
		{open, Failure, at + " must be 401: " + got.what(),
			"Aegis got other credentials than were sent: let the proxy add no Authorization header"},
		{len(values) == 0, Failure, at + " is 401 without WWW-Authenticate: clients do not learn where to sign in",
			x.fix("challenge")},
		// RFC 9110 allows several challenges; clients read the first one only.
		{len(values) > 1 || !strings.HasPrefix(value, "Bearer ") || !strings.Contains(value, `resource_metadata="`),
			Failure, at + ": WWW-Authenticate is not Aegis's alone: the proxy adds or replaces it", x.fix("challenge")},
		{differs, Failure, at + ": WWW-Authenticate is not what the configuration says", another},
		{!strings.Contains(value, `resource_metadata="`+x.origin+nameResource), Failure,
			at + ": resource_metadata in WWW-Authenticate does not begin with " + x.origin,
			"set public_url to " + x.o.Base.String()},
	})
}

// invalidToken has the form that every verifier reads, and is no one's token.
const invalidToken = "aegis-doctor-is-not-a-token"

// authorization sends an invalid token. Aegis says invalid_token in its challenge then
// (RFC 6750 section 3.1), unless the proxy removed the header. Proxies with a login of
// their own often keep the header for themselves.
func (x *examination) authorization(ctx context.Context) {
	got := x.reply(ctx, "authorization", "no answer: ", seeProxyLog, ask{
		method: http.MethodPost, path: x.o.Endpoints[0],
		header: http.Header{"Authorization": {"Bearer " + invalidToken}},
	})
	if got == nil {
		return
	}
	refused, value := got.status == http.StatusUnauthorized, got.header.Get(challengeName)
	if got.byAegis() && refused && value == "" {
		return // the missing challenge was reported by challenges
	}
	x.judge("authorization", "the Authorization header reaches Aegis", []outcome{
		{!got.byAegis(), Failure, "a request with a bearer token does not reach Aegis: " + got.what(), x.fix("path")},
		{!refused || !strings.Contains(value, "invalid_token"), Failure,
			"the Authorization header does not reach Aegis as it was sent", x.fix("authorization")},
	})
}

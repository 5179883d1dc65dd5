package doctor

import (
	"context"
	"net/http"
	"strings"
)

const challengeName = "Www-Authenticate"

// challenges asks every endpoint without a token, by each method that a client
// may begin with.
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

func (x *examination) challenge(ctx context.Context, a ask) bool {
	got, err := x.do(ctx, a)
	if err != nil {
		x.add(Failure, "challenge", a.method+" "+a.path+": no answer: "+err.Error(), "see the proxy's log")
		return false
	}
	values := got.header.Values(challengeName)
	var want *answer
	if want = x.expected(ctx, a); want != nil && want.status != http.StatusUnauthorized {
		want = nil
	}
	at := a.method + " " + a.path
	switch {
	case got.status != http.StatusUnauthorized && !got.byAegis():
		x.add(Failure, "challenge", at+" must be 401 and does not reach Aegis: "+got.what(), x.mend("path"))
	case got.status != http.StatusUnauthorized:
		x.add(Failure, "challenge", at+" must be 401: "+got.what(), "Aegis got other credentials than were sent: let the proxy add no Authorization header")
	case len(values) == 0:
		x.add(Failure, "challenge", at+" is 401 without WWW-Authenticate: clients do not learn where to sign in", x.mend("challenge"))
	case len(values) > 1 || !strings.HasPrefix(values[0], "Bearer ") || !strings.Contains(values[0], `resource_metadata="`):
		x.add(Failure, "challenge", at+": WWW-Authenticate is not Aegis's alone: the proxy adds or replaces it", x.mend("challenge"))
	case want != nil && want.header.Get(challengeName) != values[0]:
		x.add(Failure, "challenge", at+": WWW-Authenticate is not what the configuration says", another)
	case !strings.Contains(values[0], `resource_metadata="`+x.origin+nameResource):
		x.add(Failure, "challenge", at+": resource_metadata in WWW-Authenticate does not begin with "+x.origin, "set public_url to "+x.o.Base.String())
	default:
		return true
	}
	return false
}

// noToken is no token of anybody's. It has the form that every verifier reads.
const noToken = "aegis-doctor-is-not-a-token"

// authorization sends a token that is wrong: the challenge then says so, unless
// the proxy took it away.
func (x *examination) authorization(ctx context.Context) {
	got, err := x.do(ctx, ask{method: http.MethodPost, path: x.o.Endpoints[0], header: http.Header{"Authorization": {"Bearer " + noToken}}})
	switch {
	case err != nil:
		x.add(Failure, "authorization", "no answer: "+err.Error(), "see the proxy's log")
	case !got.byAegis():
		x.add(Failure, "authorization", "a request with a bearer token does not reach Aegis: "+got.what(), x.mend("path"))
	case got.status == http.StatusUnauthorized && len(got.header.Values(challengeName)) == 0:
		// The challenge is missing as a whole, and told already.
	case got.status == http.StatusUnauthorized && strings.Contains(got.header.Get(challengeName), "invalid_token"):
		x.ok("authorization", "the Authorization header reaches Aegis")
	default:
		x.add(Failure, "authorization", "the Authorization header does not reach Aegis as it was sent", x.mend("authorization"))
	}
}

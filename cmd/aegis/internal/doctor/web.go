package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// prefix is the path below which Aegis serves, "" at the root.
func (x *examination) prefix() string { return strings.TrimRight(x.o.Base.EscapedPath(), "/") }

// hello is a path where Aegis says that it is there. Below a sub-path, the host's
// root may be another program's.
func (x *examination) hello() string {
	if p := x.prefix(); p != "" {
		return p + "/"
	}
	return "/healthz"
}

// identity asks whether this is Aegis, and what stands before it.
func (x *examination) identity(ctx context.Context) {
	a, err := x.do(ctx, get(x.hello()))
	x.note(a)
	switch {
	case err != nil:
		x.add(Failure, "aegis", "no HTTP answer: "+err.Error(), "start Aegis; if a proxy is before it, see the proxy's log")
	case a.status == http.StatusOK && a.byAegis():
		x.ok("aegis", "Aegis answers%s", x.behind())
	case a.byAegis() && a.status == http.StatusForbidden && strings.Contains(a.message(), "Host"):
		x.add(Failure, "aegis", "Aegis refuses the Host that reaches it: the proxy replaces it, or public_url is not "+x.origin, x.mend("host"))
	case a.status == http.StatusBadGateway || a.status == http.StatusServiceUnavailable || a.status == http.StatusGatewayTimeout:
		x.add(Failure, "aegis", "the proxy cannot reach Aegis: "+a.what(), "start Aegis, and compare the proxy's upstream address with listen in the configuration")
	case a.status == http.StatusOK && json.Valid(a.body) && (strings.Contains(string(a.body), `"status":"ok"`) || strings.Contains(string(a.body), `"name":"aegis"`)):
		x.add(Warning, "aegis", "Aegis answers, and its X-Request-Id is missing or replaced by the proxy", x.mend("request-id"))
	default:
		x.add(Failure, "aegis", "another program answers "+x.hello()+": "+a.what(), "let the proxy pass every path of this host, or at least those of docs/operations.md, to Aegis")
	}
}

func (x *examination) behind() string {
	if x.proxy == "" {
		return ""
	}
	return ", behind " + x.proxy
}

// ready asks /readyz and repeats the checks that fail.
func (x *examination) ready(ctx context.Context) {
	a, err := x.do(ctx, get("/readyz"))
	if err != nil {
		x.add(Failure, "readyz", "no answer: "+err.Error(), "see the log of Aegis")
		return
	}
	var body struct{ Checks map[string]string }
	if json.Unmarshal(a.body, &body) != nil || body.Checks == nil {
		x.add(Warning, "readyz", "/readyz is not passed to Aegis: "+a.what(), "harmless, if it is kept inside on purpose")
		return
	}
	var wrong []string
	for name, says := range body.Checks {
		if says != "ok" {
			wrong = append(wrong, name+": "+says)
		}
	}
	slices.Sort(wrong)
	switch {
	case a.status != http.StatusOK:
		x.add(Failure, "readyz", "calls would not work now: "+strings.Join(wrong, "; "), "mend what is named; the log says more")
	case len(wrong) > 0:
		x.add(Warning, "readyz", strings.Join(wrong, "; "), "mend what is named; calls work meanwhile")
	default:
		x.ok("readyz", "all of %s are well", strings.Join(slices.Sorted(maps.Keys(body.Checks)), ", "))
	}
}

// Bounds on the difference of the clocks.
const (
	skewOdd = 30 * time.Second
	skewBad = 5 * time.Minute
)

// clock compares the Date of an answer with the clock here.
func (x *examination) clock(ctx context.Context) {
	before := x.o.Now()
	a, err := x.do(ctx, get(x.hello()))
	if err != nil {
		return // told already
	}
	x.skew("clock", "the server", a.header.Get("Date"), before)
}

func (x *examination) skew(check, who, date string, here time.Time) {
	there, err := http.ParseTime(date)
	if err != nil {
		x.add(Skipped, check, who+" sends no Date", "")
		return
	}
	off := there.Sub(here).Round(time.Second)
	const mend = "set both clocks by NTP (timedatectl set-ntp true); certificates, tokens and audit records depend on them"
	switch {
	case off.Abs() > skewBad:
		x.add(Failure, check, fmt.Sprintf("the clock of %s is off by %s against this machine's", who, off), mend)
	case off.Abs() > skewOdd:
		x.add(Warning, check, fmt.Sprintf("the clock of %s is off by %s against this machine's", who, off), mend)
	default:
		x.ok(check, "the clock of %s agrees with this machine's", who)
	}
}

// strangerName belongs to nobody (RFC 2606).
const strangerName = "aegis-doctor.invalid"

// hosts asks with a foreign Host, which must not be served.
func (x *examination) hosts(ctx context.Context) {
	a := get(x.hello())
	a.host = strangerName
	got, err := x.do(ctx, a)
	switch {
	case err != nil:
		x.ok("host", "a foreign Host is not served")
	case got.byAegis() && got.status == http.StatusOK:
		x.add(Warning, "host", "a request for a foreign Host is served: the proxy replaces Host, so Aegis cannot tell names apart", x.mend("host"))
	default:
		x.ok("host", "a foreign Host is not served (%d)", got.status)
	}
}

// origins asks as a page of a foreign site, which must be refused.
func (x *examination) origins(ctx context.Context) {
	a := ask{method: http.MethodPost, path: x.o.Endpoints[0], header: http.Header{"Origin": {"https://" + strangerName}}}
	got, err := x.do(ctx, a)
	switch {
	case err != nil:
		x.add(Failure, "origin", "no answer: "+err.Error(), "see the proxy's log")
	case got.status == http.StatusForbidden:
		x.ok("origin", "pages of foreign sites are refused")
	case got.byAegis():
		x.add(Failure, "origin", "a page of a foreign site is not refused: the proxy removes or replaces the Origin header", x.mend("origin"))
	default:
		x.add(Warning, "origin", "the endpoint is answered by another program: "+got.what(), x.mend("path"))
	}
}

// preflights asks what browsers ask before they call from a page (the Fetch
// standard): our own page may call the endpoint.
func (x *examination) preflights(ctx context.Context) {
	x.preflight(ctx, "cors", x.o.Endpoints[0], x.origin)
}

func (x *examination) preflight(ctx context.Context, check, path, origin string) {
	got, err := x.do(ctx, ask{method: http.MethodOptions, path: path, header: http.Header{
		"Origin": {origin}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization,content-type"},
	}})
	if err != nil {
		x.add(Failure, check, "no answer to a preflight of "+path+": "+err.Error(), "see the proxy's log")
		return
	}
	allowed := got.header.Values("Access-Control-Allow-Origin")
	headers := strings.ToLower(got.header.Get("Access-Control-Allow-Headers"))
	switch {
	case got.byAegis() && got.status == http.StatusForbidden:
		x.add(Failure, check, "pages of "+origin+" may not call "+path, "add "+origin+" to server.allowed_origins, or correct public_url if this is its address")
	case len(allowed) > 1 || len(allowed) == 1 && strings.Contains(allowed[0], ","):
		x.add(Failure, check, "Access-Control-Allow-Origin comes twice, which browsers refuse: the proxy adds its own", x.mend("cors"))
	case !got.byAegis():
		x.add(Failure, check, "the proxy answers preflights itself: "+got.what(), x.mend("cors"))
	case len(allowed) == 0 || allowed[0] != "*" && allowed[0] != origin || !strings.Contains(headers, "authorization"):
		x.add(Failure, check, "the preflight of "+path+" lacks its Access-Control headers: the proxy removes them", x.mend("cors"))
	default:
		x.ok(check, "preflights of %s pass for %s", path, origin)
	}
}

// plainHTTP looks at port 80, where nothing but a redirect should be.
func (x *examination) plainHTTP(ctx context.Context) {
	if x.o.Base.Scheme != "https" || x.o.Base.Port() != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, x.o.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+x.o.Base.Host+x.hello(), nil)
	if err != nil {
		return
	}
	res, err := x.pool.RoundTrip(req)
	if err != nil {
		x.ok("port 80", "plain http is closed")
		return
	}
	_ = res.Body.Close() // only the head counts
	if res.StatusCode == http.StatusOK {
		x.add(Warning, "port 80", "Aegis is served without encryption too: a client with an http address sends its token in the clear", "redirect port 80 to https, or close it")
		return
	}
	x.ok("port 80", "plain http is not served (%d)", res.StatusCode)
}

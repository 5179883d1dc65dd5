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

// hello is a path that Aegis answers without a token. Below a sub-path, the host's
// root may be another program's.
func (x *examination) hello() string {
	if p := x.prefix(); p != "" {
		return p + "/"
	}
	return "/healthz"
}

// identity checks that the program that answers is Aegis, and learns which proxy is
// before it.
func (x *examination) identity(ctx context.Context) {
	a := x.reply(ctx, "aegis", "no HTTP answer: ", "start Aegis; if a proxy is before it, see the proxy's log",
		get(x.hello()))
	if a == nil {
		return
	}
	x.note(a)
	behind := ""
	if x.proxy != "" {
		behind = ", behind " + x.proxy
	}
	// What proxies answer when nothing listens behind them.
	gateway := []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	body := string(a.body)
	// The body says so where the header is gone.
	bare := json.Valid(a.body) && (strings.Contains(body, `"status":"ok"`) || strings.Contains(body, `"name":"aegis"`))
	served := a.status == http.StatusOK
	x.judge("aegis", "Aegis answers"+behind, []outcome{
		{a.byAegis() && a.status == http.StatusForbidden && strings.Contains(a.message(), "Host"), Failure,
			"Aegis refuses the Host that reaches it: the proxy replaces it, or public_url is not " +
				x.origin, x.fix("host")},
		{slices.Contains(gateway, a.status), Failure, "the proxy cannot reach Aegis: " + a.what(),
			"start Aegis, and compare the proxy's upstream address with listen in the configuration"},
		{served && !a.byAegis() && bare, Warning,
			"Aegis answers, and its X-Request-Id is missing or replaced by the proxy", x.fix("request-id")},
		{!served || !a.byAegis(), Failure, "another program answers " + x.hello() + ": " + a.what(),
			"let the proxy pass every path of this host, or at least those of docs/operations.md, to Aegis"},
	})
}

// ready reads /readyz and repeats the checks in it that fail.
func (x *examination) ready(ctx context.Context) {
	a := x.reply(ctx, "readyz", "no answer: ", "see the log of Aegis", get("/readyz"))
	if a == nil {
		return
	}
	var body struct{ Checks map[string]string }
	// Operators may keep the path from the internet, which is right.
	hidden := json.Unmarshal(a.body, &body) != nil || body.Checks == nil
	var wrong []string
	for name, says := range body.Checks {
		if says != "ok" {
			wrong = append(wrong, name+": "+says)
		}
	}
	slices.Sort(wrong)
	list := strings.Join(wrong, "; ")
	x.judge("readyz", "all of "+strings.Join(slices.Sorted(maps.Keys(body.Checks)), ", ")+" are well", []outcome{
		{hidden, Warning, "/readyz is not passed to Aegis: " + a.what(), "harmless, if it is kept inside on purpose"},
		{a.status != http.StatusOK, Failure, "calls would not work now: " + list,
			"fix what is named; the log says more"},
		{len(wrong) > 0, Warning, list, "fix what is named; calls work meanwhile"},
	})
}

// Bounds on the difference of the clocks. Verifiers of signed tokens commonly allow
// one to five minutes.
const (
	skewOdd = 30 * time.Second
	skewBad = 5 * time.Minute
)

// clock compares the Date of an answer with the clock here.
func (x *examination) clock(ctx context.Context) {
	// The Date header has whole seconds, which the bounds are far above.
	before := x.o.Now()
	a, err := x.do(ctx, get(x.hello()))
	if err != nil {
		return // identity reported it
	}
	x.skew("clock", "the server", a.header.Get("Date"), before)
}

// skew reports the difference of a Date header from here, the time before its request.
// The way of the answer is within the bounds.
func (x *examination) skew(check, who, date string, here time.Time) {
	there, err := http.ParseTime(date)
	off := there.Sub(here).Round(time.Second)
	const ntp = "set both clocks by NTP (timedatectl set-ntp true); " +
		"certificates, tokens and audit records depend on them"
	message := fmt.Sprintf("the clock of %s is off by %s against this machine's", who, off)
	x.judge(check, "the clock of "+who+" agrees with this machine's", []outcome{
		{err != nil, Skipped, who + " sends no Date", ""},
		{off.Abs() > skewBad, Failure, message, ntp},
		{off.Abs() > skewOdd, Warning, message, ntp},
	})
}

// foreignName cannot be registered (RFC 2606).
const foreignName = "aegis-doctor.invalid"

// hosts sends a foreign Host, which must not be served: a page that had its own name
// resolve to this address (DNS rebinding) would be same-origin with Aegis.
func (x *examination) hosts(ctx context.Context) {
	a := get(x.hello())
	a.host = foreignName
	got, err := x.do(ctx, a)
	if err != nil { // a proxy that knows its names may close the connection
		x.ok("host", "a foreign Host is not served")
		return
	}
	x.judge("host", fmt.Sprintf("a foreign Host is not served (%d)", got.status), []outcome{
		{got.byAegis() && got.status == http.StatusOK, Warning,
			"a request for a foreign Host is served: the proxy replaces Host, so Aegis cannot tell names apart",
			x.fix("host")},
	})
}

// origins sends the Origin of a foreign site's page, which must be refused.
func (x *examination) origins(ctx context.Context) {
	a := ask{
		method: http.MethodPost, path: x.o.Endpoints[0], header: http.Header{"Origin": {"https://" + foreignName}},
	}
	got := x.reply(ctx, "origin", "no answer: ", seeProxyLog, a)
	if got == nil {
		return
	}
	served := got.status != http.StatusForbidden
	x.judge("origin", "pages of foreign sites are refused", []outcome{
		{served && got.byAegis(), Failure,
			"a page of a foreign site is not refused: the proxy removes or replaces the Origin header",
			x.fix("origin")},
		{served, Warning, "the endpoint is answered by another program: " + got.what(), x.fix("path")},
	})
}

// preflights sends what browsers send before a page's call (the Fetch standard): the
// page of Aegis itself may call the endpoint.
func (x *examination) preflights(ctx context.Context) {
	x.preflight(ctx, "cors", x.o.Endpoints[0], x.origin)
}

// preflight checks one preflight. Browsers refuse a call for any of its faults, and show
// people none of them.
func (x *examination) preflight(ctx context.Context, check, path, origin string) {
	got := x.reply(ctx, check, "no answer to a preflight of "+path+": ", seeProxyLog, ask{
		method: http.MethodOptions, path: path, header: http.Header{
			"Origin": {origin}, "Access-Control-Request-Method": {"POST"},
			"Access-Control-Request-Headers": {"authorization,content-type"},
		}})
	if got == nil {
		return
	}
	allowed, value := got.header.Values("Access-Control-Allow-Origin"), got.header.Get("Access-Control-Allow-Origin")
	headers := strings.ToLower(got.header.Get("Access-Control-Allow-Headers"))
	x.judge(check, "preflights of "+path+" pass for "+origin, []outcome{
		{got.byAegis() && got.status == http.StatusForbidden, Failure, "pages of " + origin + " may not call " + path,
			"add " + origin + " to server.allowed_origins, or correct public_url if this is its address"},
		{len(allowed) > 1 || strings.Contains(value, ","), Failure,
			"Access-Control-Allow-Origin comes twice, which browsers refuse: the proxy adds its own", x.fix("cors")},
		{!got.byAegis(), Failure, "the proxy answers preflights itself: " + got.what(), x.fix("cors")},
		{value != "*" && value != origin || !strings.Contains(headers, "authorization"), Failure,
			"the preflight of " + path + " lacks its Access-Control headers: the proxy removes them", x.fix("cors")},
	})
}

// plainHTTP looks at port 80, where nothing but a redirect should be. Only where https
// has its usual port: with another one, port 80 may be somebody else's.
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
	_ = res.Body.Close() // only the head is of interest
	x.judge("port 80", fmt.Sprintf("plain http is not served (%d)", res.StatusCode), []outcome{
		{res.StatusCode == http.StatusOK, Warning,
			"Aegis is served without encryption too: a client with an http address sends its token in the clear",
			"redirect port 80 to https, or close it"},
	})
}

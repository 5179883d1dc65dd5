package client_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"aegis/proxy/oauth/client"
)

const url = "https://app.example/client.json"

func addrs(list ...string) (out []netip.Addr) {
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// TestFetchStaysOnTheInternet: one answer that is not public is enough.
func TestFetchStaysOnTheInternet(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string][]netip.Addr{
		"loopback":        addrs("127.0.0.1"),
		"metadata":        addrs("169.254.169.254"),
		"private":         addrs("10.1.2.3"),
		"IPv6 loopback":   addrs("::1"),
		"mapped":          addrs("::ffff:127.0.0.1"),
		"NAT64":           addrs("64:ff9b::7f00:1"),
		"6to4":            addrs("2002:7f00:1::"),
		"Teredo":          addrs("2001:0:1::1"),
		"unique local":    addrs("fd00:ec2::254"),
		"mixed, last":     addrs("93.184.216.34", "2606:4700::1", "192.168.1.1"),
		"mixed, first":    addrs("100.64.0.1", "93.184.216.34"),
		"hidden far back": append(slices.Repeat(addrs("93.184.216.34"), 60), netip.MustParseAddr("127.0.0.1")),
		"too many":        slices.Repeat(addrs("93.184.216.34"), 65),
		"zone":            addrs("2606:4700::1%eth0"),
		"invalid":         {{}},
	} {
		n := newInternet(t)
		n.set(url, page(document(url, "http://localhost/cb")))
		n.names["app.example"] = answers
		_, err := build(t, n.options(newClock())).Client(t.Context(), url)
		if kindOf(err) != client.Refused {
			t.Errorf("%s: %v", name, err)
		}
		if d := n.dials(); len(d) != 0 {
			t.Errorf("%s: dialled %v", name, d)
		}
	}
}

// TestFetchRebinding: a name that answers with another address each time is
// asked once a fetch, and what was checked is what is dialled.
func TestFetchRebinding(t *testing.T) {
	t.Parallel()
	n, c := newInternet(t), newClock()
	n.set(url, page(document(url, "http://localhost/cb")))
	o := n.options(c)
	asked := 0
	o.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		if asked++; asked == 1 {
			return addrs("93.184.216.34"), nil
		}
		return addrs("127.0.0.1"), nil
	}
	r := build(t, o)
	if _, err := r.Client(t.Context(), url); err != nil || asked != 1 {
		t.Fatalf("%v after %d look-ups", err, asked)
	}
	c.add(25 * time.Hour)
	if _, err := r.Client(t.Context(), url); kindOf(err) != client.Refused || asked != 2 {
		t.Errorf("%v after %d look-ups", err, asked)
	}
	if d := n.dials(); !slices.Equal(d, []string{"93.184.216.34:443"}) {
		t.Errorf("dialled %v", d)
	}
}

func TestFetchTriesAddresses(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	n.set(url, page(document(url, "http://localhost/cb")))
	n.names["app.example"] = addrs("2606:4700::1", "::ffff:93.184.216.34", "1.1.1.1", "8.8.8.8", "9.9.9.9")
	o := n.options(newClock())
	var tried []string
	o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		tried = append(tried, address)
		if address != "8.8.8.8:443" {
			return nil, errors.New("connection refused")
		}
		return n.dial(ctx, network, address)
	}
	if _, err := build(t, o).Client(t.Context(), url); err != nil {
		t.Error(err)
	}
	if want := []string{"93.184.216.34:443", "1.1.1.1:443", "8.8.8.8:443"}; !slices.Equal(tried, want) {
		t.Errorf("tried %v, want %v", tried, want)
	}
}

func TestFetchGivesUp(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	n.names["app.example"] = slices.Repeat(addrs("93.184.216.34"), 64)
	o, tried := n.options(newClock()), 0
	o.Dial = func(context.Context, string, string) (net.Conn, error) {
		tried++
		return nil, errors.New("connection refused")
	}
	_, err := build(t, o).Client(t.Context(), url)
	wantError(t, err, client.Unavailable, url)
	if tried != 3 {
		t.Errorf("tried %d addresses", tried)
	}
}

// TestFetchEndlessAnswer: what does not end is cut at 5 KB, long before the time
// of a fetch is up.
func TestFetchEndlessAnswer(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	n.set(url, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for {
			if _, err := w.Write(bytes.Repeat([]byte(" "), 4096)); err != nil {
				return
			}
		}
	})
	_, err := build(t, n.options(newClock())).Client(t.Context(), url)
	wantError(t, err, client.Refused, url)
}

func TestFetchSendsNothingOfOurs(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	got := make(chan *http.Request, 1)
	n.set(url, func(w http.ResponseWriter, r *http.Request) {
		got <- r
		page(document(url, "http://localhost/cb"), "Set-Cookie", "a=b")(w, r)
	})
	r := build(t, n.options(newClock()))
	if client.DefaultTransport(r).Proxy != nil {
		t.Error("a proxy may be used")
	}
	if _, err := r.Client(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	req := <-got
	for name, values := range req.Header {
		want := map[string]string{"Accept": "application/json", "User-Agent": "Aegis", "Connection": "close"}[name]
		if len(values) != 1 || values[0] != want {
			t.Errorf("%s: %q", name, values)
		}
	}
	if req.Method != http.MethodGet || req.Host != "app.example" {
		t.Errorf("%s %s", req.Method, req.Host)
	}
}

// TestFetchAnswers: what a host can answer, and what becomes of it.
func TestFetchAnswers(t *testing.T) {
	t.Parallel()
	doc := page(document(url, "http://localhost/cb"))
	answer := func(status int, body string, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for i := 0; i+1 < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	valid := fmt.Sprintf(`{"client_id":%q,"redirect_uris":["http://localhost/cb"]}`, url)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(bytes.Repeat([]byte(" "), 6<<20))
	_ = z.Close()
	pad := func(size int) string { return valid + strings.Repeat(" ", size-len(valid)) }
	typed := func(value string) http.HandlerFunc { return answer(200, valid, "Content-Type", value) }
	for name, tt := range map[string]struct {
		page http.HandlerFunc
		want client.ErrorKind
	}{
		"good":               {doc, ""},
		"5 KB":               {answer(200, pad(5120)), ""},
		"5 KB and a byte":    {answer(200, pad(5121)), client.Refused},
		"huge":               {answer(200, pad(8<<20)), client.Refused},
		"+json":              {typed("application/oauth-client-metadata+json"), ""},
		"charset":            {typed("application/json; charset=UTF-8"), ""},
		"other charset":      {typed("application/json; charset=utf-16"), client.Refused},
		"html":               {typed("text/html"), client.Refused},
		"text/json+x":        {typed("text/x+json"), client.Refused},
		"no type":            {typed(""), client.Refused},
		"bad type":           {typed("application/json;;="), client.Refused},
		"gzip bomb":          {answer(200, bomb.String(), "Content-Encoding", "gzip"), client.Refused},
		"called compressed":  {answer(200, valid, "Content-Encoding", "br"), client.Refused},
		"unannounced gzip":   {answer(200, bomb.String()[:4096]), client.Refused},
		"identity":           {answer(200, valid, "Content-Encoding", "identity"), ""},
		"redirect to inside": {answer(302, valid, "Location", "http://169.254.169.254/latest"), client.Refused},
		"redirect to itself": {answer(301, valid, "Location", url+"2"), client.Refused},
		"307":                {answer(307, valid, "Location", "https://other.example/c"), client.Refused},
		"not found":          {answer(404, valid), client.Refused},
		"gone":               {answer(410, valid), client.Refused},
		"created":            {answer(201, valid), client.Unavailable},
		"no content":         {answer(204, ""), client.Unavailable},
		"forbidden":          {answer(403, valid), client.Unavailable},
		"too many":           {answer(429, valid), client.Unavailable},
		"trouble":            {answer(503, valid), client.Unavailable},
		"huge header":        {answer(200, valid, "X-Fill", strings.Repeat("x", 64<<10)), client.Unavailable},
		"cut":                {answer(200, valid, "Content-Length", "900"), client.Unavailable},
		"hang up":            {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, client.Unavailable},
	} {
		n := newInternet(t)
		n.set(url, tt.page)
		c, err := build(t, n.options(newClock())).Client(t.Context(), url)
		if kindOf(err) != tt.want {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if (c == nil) != (tt.want != "") {
			t.Errorf("%s: client %+v", name, c)
		}
		if err != nil {
			wantError(t, err, tt.want, url, "app.example")
		}
		if d := n.dials(); len(d) != 1 {
			t.Errorf("%s: dialled %v", name, d)
		}
	}
}

// TestFetchSlowHosts: a host that drips, or says nothing at all, ends with the
// time of a fetch.
func TestFetchSlowHosts(t *testing.T) {
	t.Parallel()
	drip := func(first string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if first != "" {
				_, _ = w.Write([]byte(first))
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done() // until the client hangs up
		}
	}
	for name, page := range map[string]http.HandlerFunc{"silent": drip(""), "dripping": drip(`{"client_id":`)} {
		n := newInternet(t)
		n.set(url, page)
		r := build(t, n.options(newClock()))
		client.SetFetchTimeout(r, 50*time.Millisecond)
		_, err := r.Client(t.Context(), url)
		if kindOf(err) != client.Unavailable || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A name server, or a host, that never answers.
	n := newInternet(t)
	o := n.options(newClock())
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	o.Lookup = func(ctx context.Context, _ string) ([]netip.Addr, error) { return nil, wait(ctx) }
	r := build(t, o)
	client.SetFetchTimeout(r, 20*time.Millisecond)
	_, err := r.Client(t.Context(), url)
	wantError(t, err, client.Unavailable, url)
	o.Lookup = n.lookup
	o.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return nil, wait(ctx) }
	r = build(t, o)
	client.SetFetchTimeout(r, 20*time.Millisecond)
	_, err = r.Client(t.Context(), url)
	wantError(t, err, client.Unavailable, url)
}

func TestFetchWantsTheRightCertificate(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	n.set(url, page(document(url, "http://localhost/cb")))
	o := n.options(newClock())
	o.Roots = nil // those of the system, which do not know the server's
	_, err := build(t, o).Client(t.Context(), url)
	wantError(t, err, client.Unavailable, url)
	if n.hit(url) != 0 {
		t.Error("asked a host that it could not know")
	}
}

func TestFreshness(t *testing.T) {
	t.Parallel()
	now := newClock().Now()
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, tt := range []struct {
		headers []string
		want    time.Duration
	}{
		{nil, time.Hour},
		{[]string{"Cache-Control", "max-age=1800"}, 30 * time.Minute},
		{[]string{"Cache-Control", "public, Max-Age=\"1800\" , immutable"}, 30 * time.Minute},
		{[]string{"Cache-Control", "max-age=1800", "Age", "600"}, 20 * time.Minute},
		{[]string{"Cache-Control", "max-age=1800", "Age", "99999"}, 5 * time.Minute},
		{[]string{"Cache-Control", "max-age=1800", "Age", "x"}, 30 * time.Minute},
		{[]string{"Cache-Control", "max-age=1"}, 5 * time.Minute},
		{[]string{"Cache-Control", "max-age=0"}, 5 * time.Minute},
		{[]string{"Cache-Control", "max-age=-1"}, 5 * time.Minute},
		{[]string{"Cache-Control", "max-age=x"}, 5 * time.Minute},
		{[]string{"Cache-Control", "max-age"}, 5 * time.Minute},
		{[]string{"Cache-Control", "max-age=31536000"}, 24 * time.Hour},
		{[]string{"Cache-Control", "max-age=99999999999999999999999999"}, 24 * time.Hour},
		{[]string{"Cache-Control", "max-age=7200, max-age=1800"}, 30 * time.Minute},
		{[]string{"Cache-Control", "max-age=1800, max-age=7200"}, 30 * time.Minute},
		{[]string{"Cache-Control", "no-store, max-age=7200"}, 5 * time.Minute},
		{[]string{"Cache-Control", "no-cache"}, 5 * time.Minute},
		{[]string{"Expires", at(2 * time.Hour)}, 2 * time.Hour},
		{[]string{"Expires", at(2 * time.Hour), "Date", at(time.Hour)}, time.Hour},
		{[]string{"Expires", at(-time.Hour)}, 5 * time.Minute},
		{[]string{"Expires", at(1000 * time.Hour)}, 24 * time.Hour},
		{[]string{"Expires", "0"}, 5 * time.Minute},
		{[]string{"Expires", at(2 * time.Hour), "Cache-Control", "max-age=1800"}, 30 * time.Minute},
	} {
		h := http.Header{}
		for i := 0; i < len(tt.headers); i += 2 {
			h.Add(tt.headers[i], tt.headers[i+1])
		}
		if got := client.Freshness(h, now); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.headers, got, tt.want)
		}
	}
}

package server_test

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
)

// person is somebody with a browser, which keeps cookies, follows redirects and
// pages that go on by themselves, and stops at addresses of clients.
type person struct {
	h      *house
	login  string
	http   *http.Client
	page   string // that is shown
	status int
	at     *url.URL
}

func (h *house) person(login string) *person {
	h.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return &person{h: h, login: login, http: &http.Client{Transport: direct.Transport, Jar: jar, CheckRedirect: noRedirect}}
}

var (
	hiddenField = regexp.MustCompile(`<input type="hidden" name="([a-z_.]+)" value="([^"]*)">`)
	refreshMeta = regexp.MustCompile(`<meta http-equiv="refresh" content="0; url=([^"]*)">`)
)

// open visits an address. It returns the address of the client when it ends there,
// and nil when a page is shown.
func (p *person) open(address string) *url.URL {
	p.h.t.Helper()
	q, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		p.h.t.Fatal(err)
	}
	return p.visit(q)
}

func (p *person) visit(q *http.Request) *url.URL {
	p.h.t.Helper()
	for range 12 {
		if p.h.from != "" && strings.HasPrefix(q.URL.String(), p.h.url) {
			q.Header.Set("X-Forwarded-For", p.h.from)
		}
		res, err := p.http.Do(q)
		if err != nil {
			p.h.t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			p.h.t.Fatal(err)
		}
		p.page, p.at, p.status = string(body), res.Request.URL, res.StatusCode
		to := res.Header.Get("Location")
		if m := refreshMeta.FindStringSubmatch(p.page); to == "" && m != nil {
			to = html.UnescapeString(m[1])
		}
		if to == "" {
			return nil
		}
		u, err := p.at.Parse(to)
		if err != nil {
			p.h.t.Fatal(err)
		}
		if to := u.String(); !strings.HasPrefix(to, p.h.root+"/") && !strings.HasPrefix(to, p.h.browsers+"/") {
			return u
		}
		if q, err = http.NewRequest(http.MethodGet, u.String(), nil); err != nil {
			p.h.t.Fatal(err)
		}
	}
	p.h.t.Fatalf("the pages go round in circles at %s", p.at)
	return nil
}

// fields returns the hidden fields of the page that is shown.
func (p *person) fields() url.Values {
	f := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(p.page, -1) {
		f.Set(m[1], html.UnescapeString(m[2]))
	}
	return f
}

// press sends the form of the page that is shown to a path of its host.
func (p *person) press(path string, pairs ...string) *url.URL {
	p.h.t.Helper()
	f := p.fields()
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Set(pairs[i], pairs[i+1])
	}
	return p.send(path, f)
}

// send sends a form, with the headers of browsers; pairs are further headers.
func (p *person) send(path string, form url.Values, pairs ...string) *url.URL {
	p.h.t.Helper()
	q, err := http.NewRequest(http.MethodPost, p.at.Scheme+"://"+p.at.Host+path, strings.NewReader(form.Encode()))
	if err != nil {
		p.h.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	q.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Header.Set(pairs[i], pairs[i+1])
	}
	return p.visit(q)
}

// goOn presses what leads on, page by page, until the client's address comes up;
// nil when there is a page that leads nowhere.
func (p *person) goOn(to *url.URL) *url.URL {
	p.h.t.Helper()
	for range 4 {
		switch {
		case to != nil:
			return to
		case strings.Contains(p.page, `name="say"`):
			to = p.press(p.h.o.path+"/consent", "access", "all", "say", "allow")
		case strings.Contains(p.page, `name="user_name"`):
			to = p.press(p.h.o.sub+"/user/login", "user_name", p.login, "password", everyPassword)
		case strings.Contains(p.page, `name="granted"`):
			to = p.press(p.h.o.sub+"/login/oauth/grant", "granted", "true")
		default:
			return nil
		}
	}
	return to
}

// allow opens an address and allows everything; the answer is what the client gets.
func (p *person) allow(address string) url.Values {
	p.h.t.Helper()
	to := p.goOn(p.open(address))
	if to == nil {
		p.h.t.Fatalf("no way back to the client from %s: %d %s", p.at, p.status, p.page)
	}
	return to.Query()
}

// everyPassword is the password of every user of the double.
const everyPassword = "demo-password"

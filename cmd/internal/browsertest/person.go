// Package browsertest is somebody with a browser, for tests that sign in to Aegis
// without one: it keeps cookies, follows redirects and pages that go on by
// themselves, fills in the forms of Aegis and of Gitea, and stops where a client
// gets its answer.
package browsertest

import (
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Person is somebody with a browser. It is not safe for concurrent use.
type Person struct {
	// Login and Password are those at Gitea.
	Login, Password string
	// Page is the page that is shown, Status its status, At its address.
	Page   string
	Status int
	At     *url.URL

	client *http.Client
	pages  func(*url.URL) bool
}

// New returns a person. Pages says which addresses have pages to go through; at every
// other one the way ends. Redirects are not followed by the client, since the one to
// the client's callback must be seen.
func New(login, password string, pages func(*url.URL) bool) *Person {
	jar, _ := cookiejar.New(nil) // has no error without options
	return &Person{Login: login, Password: password, pages: pages,
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Jar: jar, Timeout: 30 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// maxSteps bounds a way, which has about ten steps.
const maxSteps = 30

var (
	hidden  = regexp.MustCompile(`<input type="hidden" name="([a-z_.]+)" value="([^"]*)">`)
	refresh = regexp.MustCompile(`<meta http-equiv="refresh" content="0; url=([^"]*)">`)
)

// Allow opens an address that a client made for signing in, allows everything
// that it asks for, signs in to Gitea, and returns the address that the client
// gets its answer at. The error shows the page where it went no further.
func (p *Person) Allow(address string) (*url.URL, error) {
	to, err := p.open(http.MethodGet, address, nil)
	for range maxSteps {
		if to != nil || err != nil {
			return to, err
		}
		switch {
		case strings.Contains(p.Page, `name="say"`):
			to, err = p.press("/consent", "access", "all", "say", "allow")
		case strings.Contains(p.Page, `name="user_name"`):
			to, err = p.press("/user/login", "user_name", p.Login, "password", p.Password)
		case strings.Contains(p.Page, `name="granted"`):
			to, err = p.press("/login/oauth/grant", "granted", "true")
		default:
			return nil, fmt.Errorf("the way ends at %s: %d %s", p.At.Path, p.Status, p.Page)
		}
	}
	return nil, errors.New("the pages go round in circles")
}

// press sends the form of the page that is shown.
func (p *Person) press(path string, pairs ...string) (*url.URL, error) {
	form := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(p.Page, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	// They come after the hidden fields, and may replace one.
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return p.open(http.MethodPost, p.At.Scheme+"://"+p.At.Host+path, form)
}

// open goes to an address, and on from there by itself.
func (p *Person) open(method, address string, form url.Values) (*url.URL, error) {
	for range maxSteps {
		req, err := http.NewRequest(method, address, strings.NewReader(form.Encode()))
		if err != nil {
			return nil, err
		}
		if method == http.MethodPost {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			// Aegis refuses forms that another site sent, by this header.
			req.Header.Set("Sec-Fetch-Site", "same-origin")
		}
		to, err := p.send(req)
		if to == nil || err != nil {
			return nil, err
		}
		if !p.pages(to) {
			return to, nil
		}
		method, address, form = http.MethodGet, to.String(), nil
	}
	return nil, errors.New("the redirects go round in circles")
}

// send sends one request, and returns where its answer leads; nil: it stays. A page may
// lead on by itself, where a redirect would be blocked by a policy of the page with the
// form.
func (p *Person) send(req *http.Request) (*url.URL, error) {
	res, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	p.Page, p.Status, p.At = string(body), res.StatusCode, req.URL
	to := res.Header.Get("Location")
	if m := refresh.FindStringSubmatch(p.Page); to == "" && m != nil {
		to = html.UnescapeString(m[1])
	}
	if to == "" {
		return nil, nil
	}
	return req.URL.Parse(to)
}

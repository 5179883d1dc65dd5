package fakegitea

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Approve does what a person with a browser does: she logs in, opens the URL of
// the authorization endpoint and agrees, if she is asked. It returns where the
// browser is sent in the end, with a code or an error. The requests take the way of
// all others: they are recorded, counted and hit by faults.
func (s *Server) Approve(login, authorizeURL string) (location string, err error) {
	return s.browse(login, authorizeURL, "true")
}

// Deny is Approve by a person who does not agree.
func (s *Server) Deny(login, authorizeURL string) (location string, err error) {
	return s.browse(login, authorizeURL, "false")
}

// browse visits the pages one after the other.
func (s *Server) browse(login, authorizeURL, granted string) (string, error) {
	at, err := url.Parse(authorizeURL)
	if err != nil {
		return "", fmt.Errorf("parse the URL of the authorization endpoint: %w", err)
	}
	base, ok := strings.CutSuffix(at.EscapedPath(), "/login/oauth/authorize")
	if !ok {
		return "", errors.New("not the URL of an authorization endpoint")
	}
	b := &browser{s: s, origin: at.Scheme + "://" + at.Host}
	s.mu.Lock()
	u := s.world.userByLogin(login)
	form := url.Values{"user_name": {login}}
	if u != nil {
		form.Set("password", u.Password)
	}
	s.mu.Unlock()
	out, err := b.visit(http.MethodPost, base+"/user/login", form)
	if err != nil {
		return "", err
	}
	if out.status != http.StatusSeeOther {
		return "", fmt.Errorf("the login of %s was refused", login)
	}
	if out, err = b.visit(http.MethodGet, at.RequestURI(), nil); err != nil {
		return "", err
	}
	if out.status == http.StatusOK {
		q := at.Query()
		out, err = b.visit(http.MethodPost, base+"/login/oauth/grant", url.Values{
			"client_id": q["client_id"], "state": q["state"], "scope": q["scope"], "nonce": q["nonce"],
			"redirect_uri": q["redirect_uri"], "granted": {granted},
		})
		if err != nil {
			return "", err
		}
	}
	if out.status != http.StatusSeeOther {
		return "", fmt.Errorf("the authorization ended with status %d", out.status)
	}
	return out.header.Get("Location"), nil
}

// browser keeps the session cookie between visits.
type browser struct {
	s      *Server
	origin string
	cookie *http.Cookie
}

// visit sends one request and keeps the cookie of the session.
func (b *browser) visit(method, path string, form url.Values) (*response, error) {
	r, err := http.NewRequest(method, b.origin+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	r.RequestURI = r.URL.RequestURI()
	r.Header.Set("Accept", "text/html")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", b.origin)
	}
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	out := &response{status: http.StatusOK, header: http.Header{}}
	b.s.ServeHTTP(out, r)
	for _, line := range out.header["Set-Cookie"] {
		if k, err := http.ParseSetCookie(line); err == nil && k.Name == sessionCookie {
			b.cookie = &http.Cookie{Name: k.Name, Value: k.Value}
		}
	}
	return out, nil
}

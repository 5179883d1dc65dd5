package upstream_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
)

// Approve does what a person with a browser does: she logs in, opens the URL of the
// authorization endpoint and agrees, if she is asked. It returns where the browser is
// sent in the end, with a code or an error. The requests do not go over the network,
// so that the cookies of any public address come back.
func (l *lab) Approve(login, authorizeURL string) (location string, err error) {
	return browse(l, login, authorizeURL)
}

// browse visits the pages one after the other.
func browse(s http.Handler, login, authorizeURL string) (string, error) {
	at, err := url.Parse(authorizeURL)
	if err != nil {
		return "", err
	}
	base := strings.TrimSuffix(authorizeURL, "/login/oauth/authorize?"+at.RawQuery)
	var cookies []*http.Cookie
	visit := func(method, address string, form url.Values) *http.Response {
		r := httptest.NewRequest(method, address, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, k := range cookies {
			r.AddCookie(k)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Result()
	}
	res := visit("POST", base+"/user/login", url.Values{"user_name": {login}, "password": {"demo-password"}})
	cookies = res.Cookies()
	if res.StatusCode == http.StatusSeeOther {
		res = visit("GET", authorizeURL, nil)
	}
	if res.StatusCode == http.StatusOK {
		form := at.Query()
		form.Set("granted", "true")
		res = visit("POST", base+"/login/oauth/grant", form)
	}
	if res.StatusCode != http.StatusSeeOther {
		return "", fmt.Errorf("the authorization of %s ended with status %d", login, res.StatusCode)
	}
	return res.Header.Get("Location"), nil
}

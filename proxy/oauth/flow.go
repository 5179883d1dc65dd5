package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"aegis/proxy/kv"
)

// A sign-in has two halves. Until the person has said yes, the request travels in
// the consent form, signed, and nothing is stored: strangers can ask as often as
// they like. The yes makes a flow, which waits in the store for Gitea's answer
// and is bound to the browser that said yes.

// asked is what a client asks for at /authorize, checked.
type asked struct {
	ClientID    string `json:"client_id"`
	RedirectURI string `json:"redirect_uri"`
	// State is the client's, byte for byte; nil: it sent none.
	State     []byte   `json:"state"`
	Challenge string   `json:"challenge"`
	Scopes    []string `json:"scopes"`
	Resource  string   `json:"resource"`
}

// ticket is an asked in the consent form.
type ticket struct {
	Asked asked `json:"asked"`
	// Until is when the form stops working, in Unix seconds.
	Until int64 `json:"until"`
}

// flowTTL is how long a person may take for the consent page, and again for
// Gitea's pages.
const flowTTL = 10 * time.Minute

// id names a request of a browser: loading the page again makes the same one, so
// that of all its copies one can be answered.
func (a asked) id(browser string) string {
	text, _ := json.Marshal(a) // texts always marshal
	sum := sha256.Sum256(append([]byte(browser+" "), text...))
	return hex.EncodeToString(sum[:])
}

// seal puts a request into a form.
func (s *Server) seal(a asked) string {
	text, _ := json.Marshal(ticket{Asked: a, Until: s.o.Now().Add(flowTTL).Unix()}) // as above
	return s.keys.sign(text)
}

// unseal takes a request out of a form; late: it is ours and too old.
func (s *Server) unseal(form string) (a asked, late, ok bool) {
	text, ok := s.keys.open(form)
	var t ticket
	if !ok || json.Unmarshal(text, &t) != nil {
		return asked{}, false, false
	}
	return t.Asked, s.o.Now().Unix() > t.Until, true
}

// The purposes of flows.
const (
	forClient  = "client"
	forAccount = "account"
)

// flow is a sign-in at Gitea under way.
type flow struct {
	Purpose string `json:"purpose"`
	Asked   asked  `json:"asked"` // with the scopes that the person left
	// Browser is the digest of the cookie that the browser got with the yes.
	Browser string `json:"browser"`
	// Verifier is the PKCE verifier for Gitea.
	Verifier string `json:"verifier"`
}

// answerOnce marks a request as answered, for as long as a form of it can live. One that
// was answered before is refused.
func (s *Server) answerOnce(ctx context.Context, id string) error {
	_, err := s.o.Store.CompareAndSwap(ctx, "flow-used/"+id, 0, []byte("{}"), flowTTL+time.Minute)
	if errors.Is(err, kv.ErrConflict) {
		return newNotice(http.StatusConflict, "This was answered already",
			"Every request can be answered once. To connect again, start again in your MCP client.")
	}
	return err
}

// begin makes a flow, gives the browser its cookie and returns Gitea's address to
// send it to. The state is new: nothing from before the yes is good after it.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, f flow) (login string, err error) {
	state, cookie := fresh(), fresh()
	f.Browser, f.Verifier = digest(cookie), fresh()
	if err := s.put(r.Context(), "flow", state, f, flowTTL); err != nil {
		return "", err
	}
	s.setCookie(w, flowCookie(state), cookie, flowTTL)
	return s.o.Upstream.LoginURL(state, f.Verifier), nil
}

// put keeps a value that a browser can name by a secret, which the store does not see.
func (s *Server) put(ctx context.Context, kind, secret string, v any, ttl time.Duration) error {
	text, err := json.Marshal(v)
	if err == nil {
		err = s.o.Store.Put(ctx, kind+"/"+digest(secret), text, ttl)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return nil
}

// finish takes the flow of a state out of the store, so that it works once
// whatever comes of it, and checks that this is the browser that began it. A state is
// refused that is unknown, too old, over or of another browser.
func (s *Server) finish(w http.ResponseWriter, r *http.Request, state string) (flow, error) {
	var e kv.Entry
	err := kv.ErrNotFound
	if state != "" { // else the store, which may be down, need not be asked
		e, err = s.o.Store.Take(r.Context(), "flow/"+digest(state))
	}
	if errors.Is(err, kv.ErrNotFound) {
		return flow{}, newNotice(http.StatusBadRequest, "This sign-in is over",
			"It took too long, or it was finished before. Start again in your MCP client.")
	}
	var f flow
	if err == nil {
		err = json.Unmarshal(e.Value, &f)
	}
	if err != nil {
		return flow{}, fmt.Errorf("flow: %w", err)
	}
	cookie := s.cookie(r, flowCookie(state))
	if subtle.ConstantTimeCompare([]byte(digest(cookie)), []byte(f.Browser)) != 1 {
		return flow{}, newNotice(http.StatusForbidden, "This sign-in began in another browser",
			"It must end where it began, so nothing was allowed. If somebody sent you here, they tried to use your "+
				"account: just close this page. Otherwise start again in your MCP client.")
	}
	s.setCookie(w, flowCookie(state), "", gone)
	return f, nil
}

// flowCookie is the name of a flow's cookie: flows in several tabs do not meet.
func flowCookie(state string) string { return "flow-" + digest(state)[:12] }

// browserCookie marks a browser before it says yes; forms must come from it.
const browserCookie = "browser"

// sessionCookie is that of /account.
const sessionCookie = "account"

// cookieName: browsers accept a name that begins with __Host- only from this very
// host over https, so that no neighbour of the domain can plant one. On plain
// http, which is for loopback, the prefix would make them drop it.
func (s *Server) cookieName(name string) string {
	if s.secure {
		return "__Host-aegis-" + name
	}
	return "aegis-" + name
}

// setCookie sets a cookie that no script sees and that other sites' forms do not
// send; [gone] as ttl deletes it.
func (s *Server) setCookie(w http.ResponseWriter, name, value string, ttl time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: s.cookieName(name), Value: value, Path: "/", MaxAge: int(ttl.Seconds()),
		Secure: s.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// cookie returns the value of a cookie, "" when there is none, when there are
// several, or when it is none of ours.
func (s *Server) cookie(r *http.Request, name string) string {
	all := r.CookiesNamed(s.cookieName(name))
	if len(all) != 1 || len(all[0].Value) != freshLen {
		return ""
	}
	return all[0].Value
}

// browser returns the browser's mark and gives it one when it has none.
func (s *Server) browser(w http.ResponseWriter, r *http.Request) string {
	mark := s.cookie(r, browserCookie)
	if mark == "" {
		mark = fresh()
	}
	s.setCookie(w, browserCookie, mark, browserTTL)
	return mark
}

// gone is a cookie's lifetime that makes browsers drop it: a negative number of seconds.
const gone = -time.Second

// browserTTL outlives the forms that depend on it.
const browserTTL = time.Hour

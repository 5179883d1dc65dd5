package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"aegis/proxy/kv"
	"aegis/proxy/oauth/grant"
	"aegis/proxy/oauth/upstream"
)

// session is a person who is signed in to /account. Nothing else knows sessions:
// they give no access to Gitea.
type session struct {
	cookie string
	UserID int64     `json:"user_id"`
	Login  string    `json:"login"`
	Until  time.Time `json:"until"`
}

// sessionTTL is short: the page is for a look now and then, and what a person may
// see of others depends on the login that Gitea named at the sign-in.
const sessionTTL = 30 * time.Minute

// maxListed bounds the grants of others on one page. The command line has no bound.
const maxListed = 500

// The actions of the forms on /account.
const (
	actSignIn    = "sign_in"
	actSignOut   = "sign_out"
	actRevoke    = "revoke"
	actRevokeAll = "revoke_all"
)

// account answers /account: what a person has allowed, and how to end it. The token of its
// forms belongs to the session, or, before there is one, to the browser's mark: that one is
// good for signing in alone.
func (s *Server) account(w http.ResponseWriter, r *http.Request) error {
	who, err := s.session(r)
	if err != nil {
		return err
	}
	if r.Method == http.MethodPost {
		return s.act(w, r, who)
	}
	browser := s.browser(w, r)
	v := accountView{Action: s.prefix + pathAccount, RevokeURL: s.o.Upstream.RevokeURL()}
	if who == nil {
		v.Token = s.keys.formToken(browser, actSignIn)
	} else {
		v.Token, v.Login, v.userID = s.keys.formToken(who.cookie, pathAccount), who.Login, who.UserID
		if err := s.fill(r.Context(), &v, who); err != nil {
			return err
		}
	}
	s.render(w, r, http.StatusOK, view{Title: "Connected clients", Wide: true, Body: v.markup()})
	return nil
}

// accountView is what the page shows; without a Login, there is no session.
type accountView struct {
	Action, Token string
	Login         string
	userID        int64
	RevokeURL     string
	Codes         []PendingCode
	Mine, Others  []grant.Grant
	Admin, More   bool
}

// fill adds what belongs to the person and, for an admin, what belongs to others.
func (s *Server) fill(ctx context.Context, v *accountView, who *session) error {
	var err error
	if v.Mine, err = s.o.Grants.List(ctx, who.UserID); err != nil {
		return fmt.Errorf("grants: %w", err)
	}
	if s.o.Codes != nil {
		if v.Codes, err = s.o.Codes.Pending(ctx, who.UserID); err != nil {
			return fmt.Errorf("codes: %w", err)
		}
	}
	sortGrants(v.Mine)
	if v.Admin = s.admin(who); !v.Admin {
		return nil
	}
	for g, err := range s.o.Grants.All(ctx) {
		if err != nil {
			return fmt.Errorf("grants: %w", err)
		}
		if g.UserID == who.UserID {
			continue
		}
		if v.More = len(v.Others) >= maxListed; v.More {
			break
		}
		v.Others = append(v.Others, g)
	}
	sortGrants(v.Others)
	return nil
}

// sortGrants puts what was used last in front.
func sortGrants(list []grant.Grant) {
	slices.SortFunc(list, func(a, b grant.Grant) int {
		return cmp.Or(b.LastUsed.Compare(a.LastUsed), b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
}

// admin reports whether a person sees everybody's clients. Gitea's logins do not
// differ by case.
func (s *Server) admin(who *session) bool {
	same := func(login string) bool { return strings.EqualFold(login, who.Login) }
	return slices.ContainsFunc(s.o.Config.Admins, same)
}

// session returns who is signed in, nil when there is no session.
func (s *Server) session(r *http.Request) (*session, error) {
	cookie := s.cookie(r, sessionCookie)
	if cookie == "" {
		return nil, nil
	}
	e, err := s.o.Store.Get(r.Context(), "session/"+digest(cookie))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	who := &session{cookie: cookie}
	if err == nil {
		err = json.Unmarshal(e.Value, who)
	}
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	if who.UserID == 0 || !s.o.Now().Before(who.Until) {
		return nil, nil
	}
	return who, nil
}

// signedIn opens a session. It is always a new one: no cookie from before the
// sign-in is good after it.
func (s *Server) signedIn(w http.ResponseWriter, r *http.Request, user *upstream.User) error {
	cookie := fresh()
	who := session{UserID: user.ID, Login: user.Login, Until: s.o.Now().Add(sessionTTL)}
	if err := s.put(r.Context(), "session", cookie, who, sessionTTL); err != nil {
		return err
	}
	s.setCookie(w, sessionCookie, cookie, sessionTTL)
	s.event(r, Event{Name: "login", Reason: "signed in to " + pathAccount, UserID: user.ID, Login: user.Login})
	s.redirect(w, s.issuer+pathAccount)
	return nil
}

// act does what a form on the page asks for. Signing in is a form too and not a link:
// another site could open a link and sign people in without their doing.
func (s *Server) act(w http.ResponseWriter, r *http.Request, who *session) error {
	form, f := readForm(w, r, maxForm, "do", "id", "token")
	if f != nil {
		return f
	}
	do, token := form.get("do"), form.get("token")
	if do == actSignIn {
		if !s.keys.checkForm(s.cookie(r, browserCookie), actSignIn, token) {
			return notOurs("Load the page again.")
		}
		return s.signIn(w, r)
	}
	if who == nil {
		n := newNotice(http.StatusForbidden, "You are not signed in any more", "Nothing was changed. Sign in again.")
		return n.leading(s.prefix+pathAccount, "Sign in", false)
	}
	if !s.keys.checkForm(who.cookie, pathAccount, token) {
		return notOurs("Load the page again.")
	}
	if err := s.change(r, who, do, form.get("id")); err != nil {
		return err
	}
	if do == actSignOut {
		s.setCookie(w, sessionCookie, "", gone)
	}
	// A form may be answered by a redirect as long as it stays on this host.
	s.send(w, http.StatusSeeOther, s.issuer+pathAccount)
	return nil
}

// notOurs is the answer to a form without the right token.
func notOurs(do string) error {
	return newNotice(http.StatusForbidden, "This form is not one of ours", "Nothing was changed. "+do)
}

// signIn leads to Gitea under the same limit as a consent: each flow waits in the store.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := tooMany(s.rates.begin.take(everyone)); err != nil {
		return err
	}
	return s.toGitea(w, r, flow{Purpose: forAccount}, "Gitea now asks you to sign in, if you have not yet.")
}

// toGitea begins a flow. The answer to the form is a page that leads to Gitea, as
// browsers hold a redirect to the form-action of this page's policy.
func (s *Server) toGitea(w http.ResponseWriter, r *http.Request, f flow, says string) error {
	login, err := s.begin(w, r, f)
	if err != nil {
		return err
	}
	s.show(w, r, newNotice(http.StatusOK, "On to Gitea", says).leading(login, "Continue to Gitea", true))
	return nil
}

// change ends a session or grants. A grant is void at once, before the credential behind it
// is given up: when that fails, the sweep sees to it.
func (s *Server) change(r *http.Request, who *session, do, id string) error {
	ctx := r.Context()
	switch do {
	case actSignOut:
		if err := s.o.Store.Delete(ctx, "session/"+digest(who.cookie)); err != nil {
			return fmt.Errorf("session: %w", err)
		}
		return nil
	case actRevokeAll:
		if _, err := s.o.Grants.EndUser(ctx, who.UserID); err != nil {
			return fmt.Errorf("grants: %w", err)
		}
		return s.forget(ctx, who.UserID)
	case actRevoke:
		g, err := s.find(ctx, who, id)
		if err != nil || g == nil {
			return err // gone already is as good as ended
		}
		if err := s.o.Grants.End(ctx, g.ID); err != nil {
			return fmt.Errorf("grant: %w", err)
		}
		return s.forget(ctx, g.UserID)
	}
	return invalid("there is no such action")
}

// find returns a grant that the person may end, nil when there is none: to everyone but an
// admin, the grants of others do not exist.
func (s *Server) find(ctx context.Context, who *session, id string) (*grant.Grant, error) {
	g, err := s.o.Grants.Get(ctx, id)
	switch {
	case errors.Is(err, grant.ErrInvalid):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("grants: %w", err)
	case g.UserID != who.UserID && !s.admin(who):
		return nil, nil
	}
	return &g, nil
}

// forget drops a person's Gitea credential when no client is left that needs it. Gitea
// keeps its own side, which the person can revoke there alone.
func (s *Server) forget(ctx context.Context, userID int64) error {
	left, err := s.o.Grants.List(ctx, userID)
	if err != nil {
		return fmt.Errorf("grants: %w", err)
	}
	if len(left) > 0 {
		return nil
	}
	s.recent.Take(userID)
	if err := s.o.Upstream.Forget(ctx, userID); err != nil {
		return fmt.Errorf("credential: %w", err)
	}
	return nil
}

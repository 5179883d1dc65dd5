package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// App is an OAuth application in Gitea.
type App struct {
	ID           int64    `json:"id"`
	Name         string   `json:"name"`
	ClientID     string   `json:"client_id"`
	Confidential bool     `json:"confidential_client"`
	RedirectURIs []string `json:"redirect_uris"`
	// Secret is shown by Gitea once, when it is made. It is never reported, only
	// written to a file.
	Secret string `json:"client_secret"`
}

// appsPath has the OAuth applications of the token's user. They belong to a user and
// not to the site, so that no administrator is needed.
const appsPath = "/user/applications/oauth2"

// ErrScope is returned for a token that may not make applications.
var ErrScope = errors.New("the token may not do this; it needs the scope write:user")

// Apps lists the applications of a token's user, up to 50.
func (g Gitea) Apps(ctx context.Context, token string) ([]App, error) {
	res, body, err := g.get(ctx, appsPath+"?page=1&limit=50", token)
	if err != nil {
		return nil, fmt.Errorf("Gitea does not answer: %w", err)
	}
	var list []App
	return list, readApp(res, body, http.StatusOK, &list)
}

// MakeApp makes a confidential application with one redirect URI and returns it
// with its secret. With an id it makes that application so and gives it a new
// secret, which ends the old one.
func (g Gitea) MakeApp(ctx context.Context, token string, a App) (App, error) {
	// All three are always sent: what a change leaves out, Gitea sets to nothing.
	in, err := json.Marshal(map[string]any{
		"name": a.Name, "redirect_uris": a.RedirectURIs, "confidential_client": true,
	})
	if err != nil {
		return App{}, err
	}
	method, path, want := http.MethodPost, appsPath, http.StatusCreated
	if a.ID != 0 {
		method, path, want = http.MethodPatch, fmt.Sprintf("%s/%d", appsPath, a.ID), http.StatusOK
	}
	res, body, err := g.send(ctx, method, path, token, bytes.NewReader(in))
	if err != nil {
		return App{}, fmt.Errorf("Gitea does not answer: %w", err)
	}
	var made App
	if err := readApp(res, body, want, &made); err != nil {
		return App{}, err
	}
	// An application that is not confidential would let everybody who knows its id be
	// Aegis.
	if made.ClientID == "" || made.Secret == "" || !made.Confidential {
		return App{}, ErrNotGitea
	}
	return made, nil
}

// readApp reads an answer of appsPath.
func readApp(res *http.Response, body []byte, want int, into any) error {
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		return ErrToken
	// The status is enough: Gitea answers so for a scope that is missing, and these
	// routes know no other reason.
	case res.StatusCode == http.StatusForbidden:
		return ErrScope
	case res.StatusCode != want:
		return fmt.Errorf("Gitea answers %s to a request for its OAuth applications; is [oauth2] ENABLED in app.ini?",
			res.Status)
	case json.Unmarshal(body, into) != nil:
		return ErrNotGitea
	}
	return nil
}

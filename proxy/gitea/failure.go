package gitea

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"aegis/proxy"
)

// kinds says what a status of Gitea means. Others follow from their class.
var kinds = map[int]proxy.Kind{
	http.StatusBadRequest:            proxy.KindBadRequest,
	http.StatusUnauthorized:          proxy.KindUnauthorized,
	http.StatusForbidden:             proxy.KindForbidden,
	http.StatusNotFound:              proxy.KindNotFound,
	http.StatusMethodNotAllowed:      proxy.KindMethodNotAllowed,
	http.StatusConflict:              proxy.KindConflict,
	http.StatusGone:                  proxy.KindGone,
	http.StatusPreconditionFailed:    proxy.KindPreconditionFailed,
	http.StatusRequestEntityTooLarge: proxy.KindPayloadTooLarge,
	http.StatusUnprocessableEntity:   proxy.KindValidation,
	http.StatusLocked:                proxy.KindLocked,
	http.StatusTooManyRequests:       proxy.KindRateLimited,
	http.StatusBadGateway:            proxy.KindUpstreamUnavailable,
	http.StatusServiceUnavailable:    proxy.KindUpstreamUnavailable,
	http.StatusGatewayTimeout:        proxy.KindUpstreamUnavailable,
}

// advice is what to do about a kind; it follows Gitea's own message. Gitea's own words are
// short and written for people who know its source; a model that gets no more repeats the
// call.
var advice = map[proxy.Kind]string{
	proxy.KindUnauthorized: "the Gitea token of this identity is not accepted: " +
		"it may be revoked, expired or mistyped; sign in again, or have the operator replace it",
	proxy.KindForbidden: "this identity lacks the permission, or its token the scope",
	proxy.KindNotFound: "it does not exist, or this identity may not see it: " +
		"Gitea answers the same for both",
	proxy.KindMethodNotAllowed:    "Gitea does not allow this now; read the object's state before you try again",
	proxy.KindConflict:            "it collides with the present state; read that before you try again",
	proxy.KindLocked:              "the repository is archived: it can be read, not changed",
	proxy.KindRateLimited:         "too many requests; wait before you try again",
	proxy.KindUpstreamError:       "Gitea failed; the cause is in its log",
	proxy.KindUpstreamUnavailable: "Gitea is not available; try again later",
	proxy.KindPayloadTooLarge:     "Gitea, or a proxy before it, does not take a body of this size",
}

// failure is the error of an answer that is none: a status for programs to branch on,
// Gitea's own words for people, and what to do. Which of Gitea's layers refused is not
// kept: callers could do nothing with it.
func (c *Client) failure(req *request, ans *answer) *proxy.Error {
	if ans.status/100 == 3 {
		return c.redirected(req, ans)
	}
	kind, known := kinds[ans.status]
	switch {
	case known:
	// A status without a name of its own means what its class means.
	case ans.status/100 == 4:
		kind = proxy.KindBadRequest
	default:
		kind = proxy.KindUpstreamError
	}
	e := &proxy.Error{Kind: kind, Status: ans.status, RetryAfter: proxy.RetryAfter(ans.header, time.Now(), maxAsked)}
	message := c.message(req, ans)
	// Quoted is how much of the text are Gitea's words: masking and the envelope treat
	// these as a stranger's.
	e.Quoted, e.Untrusted = len(message), message != ""
	hint := advice[kind]
	// A proxy in between may answer so after Gitea has begun.
	if kind == proxy.KindUpstreamUnavailable && !req.repeatable {
		hint += "; it is unknown whether the request was carried out: check before you repeat it"
	}
	e.Public = cmp.Or(message, hint, http.StatusText(ans.status), "Gitea refused the request without saying why")
	if message != "" && hint != "" {
		e.Public += " (" + hint + ")"
	}
	return e
}

// message returns Gitea's own words of an error, fit to leave the process; ""
// when there are none worth it.
func (c *Client) message(req *request, ans *answer) string {
	text := errorText(ans)
	// What broke is for Gitea's operator, and may hold addresses or statements of SQL.
	if ans.status >= 500 && showsInternals(text) {
		return ""
	}
	s := scrubber{host: c.host, secret: req.cred.Secret(), credentials: c.scrub}
	return s.scrub(text)
}

// errorText digs the message out of an error's body. Gitea has several forms, depending on
// which of its layers refused.
func errorText(ans *answer) string {
	media := mediaType(ans.header)
	body := strings.TrimSpace(string(ans.body))
	// By its look and not its type: proxies label pages as JSON, and Gitea JSON as
	// text.
	if strings.HasPrefix(body, "{") {
		var e struct {
			Message       string          `json:"message"`
			Error         string          `json:"error"`
			Description   string          `json:"error_description"`
			Errors        json.RawMessage `json:"errors"`
			InvalidTopics json.RawMessage `json:"invalidTopics"`
		}
		if json.Unmarshal([]byte(body), &e) != nil {
			return ""
		}
		parts := []string{e.Message, e.Error, e.Description, words(e.Errors)}
		if topics := words(e.InvalidTopics); topics != "" {
			parts = append(parts, "invalid topics: "+topics)
		}
		return joinParts(parts, ": ")
	}
	if media == "text/html" || strings.HasPrefix(body, "<") {
		// A page is written for people at a browser; what a proxy prints there is
		// its name and version, and the status says the rest.
		return pageTitle(body)
	}
	if ans.status >= 500 {
		return "" // plain text of a 5xx is a stack trace or says "Internal Server Error"
	}
	return body
}

// words renders a JSON string, or a list of strings, as text.
func words(raw json.RawMessage) string {
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		return joinParts(list, ", ")
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one
	}
	var objects []struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &objects) == nil {
		for _, o := range objects {
			list = append(list, o.Message)
		}
	}
	return joinParts(list, ", ")
}

// joinParts joins the parts that say something, once each. Gitea often says the same as
// message and as error.
func joinParts(parts []string, sep string) string {
	var b strings.Builder
	for i, part := range parts {
		if part = strings.TrimSpace(part); part == "" || i > 0 && part == strings.TrimSpace(parts[0]) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(sep)
		}
		b.WriteString(part)
	}
	return b.String()
}

// redirected is the error of a redirect. The new place is named only when it is a
// repository or an account of the same API, and by its name alone: the rest of a Location
// may hold signed addresses. Gitea redirects where a repository was renamed or moved; what
// is behind the new name may be somebody else's by now, so the caller decides.
func (c *Client) redirected(req *request, ans *answer) *proxy.Error {
	e := &proxy.Error{Kind: proxy.KindUpstreamError, Status: ans.status,
		Public: "Gitea answers with a redirect, which Aegis never follows; open it in Gitea's web pages, " +
			"or have the operator check gitea.url (scheme and final host name) and switch off serving downloads " +
			"straight from storage"}
	location, err := url.Parse(ans.header.Get("Location"))
	if err != nil {
		return e
	}
	_, rest, found := strings.Cut(location.EscapedPath(), "/api/v1/")
	if !found || location.Host != "" && !strings.EqualFold(location.Host, c.host) {
		return e
	}
	what, name := movedTo(rest)
	if name == "" {
		return e
	}
	if _, old := movedTo(strings.TrimPrefix(req.path, "/")); strings.EqualFold(old, name) {
		return e
	}
	e.Kind, e.Untrusted = proxy.KindMoved, true // somebody has chosen the name
	e.Public = "the " + what + " is now " + name + "; nothing was sent there, repeat the call with the new name"
	return e
}

// movedTo returns the repository or account that an API path begins with. It reads the
// request's path and the new one alike, so that the two can be compared.
func movedTo(path string) (what, name string) {
	segs := strings.SplitN(path, "/", 4)
	// Only what is a name is repeated: the rest of a Location is whatever a server
	// likes.
	plain := func(i int) string {
		if i >= len(segs) {
			return ""
		}
		s, err := url.PathUnescape(segs[i])
		if err != nil || len(s) > 255 || checkPathValue("owner", s) != "" || strings.IndexFunc(s, notASCII) >= 0 {
			return ""
		}
		return s
	}
	switch segs[0] {
	case "repos":
		if owner, repo := plain(1), plain(2); owner != "" && repo != "" {
			return "repository", owner + "/" + repo
		}
	case "users":
		return "account", plain(1)
	case "orgs":
		return "organisation", plain(1)
	}
	return "", ""
}

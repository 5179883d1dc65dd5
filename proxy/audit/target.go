package audit

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"aegis/proxy"
)

// masked takes the place of names that may be something else.
const masked = "[masked]"

// plainName is what Gitea accepts as the name of a user, organization or
// repository. Anything else in such a place may be anything, a secret too.
var plainName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

// describe returns what is recorded of a call's tool and arguments. The names
// of arguments are the tool's own: others were refused before.
func (l *Log) describe(c *proxy.Call) *Call {
	t := c.Tool
	out := &Call{Tool: t.Name, Operation: t.OperationID, Method: t.Method, Path: t.Path, Risk: t.Risk.String()}
	for name := range c.Args {
		if slices.ContainsFunc(t.Params, func(p proxy.Param) bool { return p.Name == name }) {
			out.Arguments = append(out.Arguments, name)
		}
	}
	slices.Sort(out.Arguments)
	out.Target = l.target(c)
	return out
}

// target returns what a call is about, nil when its path does not say.
func (l *Log) target(c *proxy.Call) *Target {
	t := c.Target
	if c.Op == nil {
		t = targetOf(c.Wire.Path)
	}
	if t == (proxy.Target{}) {
		return nil
	}
	return &Target{
		Owner: l.name(t.Owner), Repo: l.name(t.Repo), Org: l.name(t.Org), User: l.name(t.User),
		Index: t.Index, ID: t.ID,
	}
}

// routes match the beginnings of paths that name a target.
var routes = regexp.MustCompile(`^/(?:` +
	`repos/(?P<owner>[^/]+)/(?P<repo>[^/]+)(?:/(?:issues|pulls)/(?P<index>[0-9]{1,18}))?` +
	`|orgs/(?P<org>[^/]+)|(?:admin/)?users/(?P<user>[^/]+))(?:/|$)`)

// targetOf reads a target from the path of a route that the catalog lacks. It is for
// the record alone: nothing is decided by it.
func targetOf(path string) (t proxy.Target) {
	m := routes.FindStringSubmatch(path)
	if m == nil {
		return t
	}
	part := func(name string) string { return m[routes.SubexpIndex(name)] }
	t.Owner, t.Repo, t.Org, t.User = part("owner"), part("repo"), part("org"), part("user")
	t.Index, _ = strconv.ParseInt(part("index"), 10, 64) // 0 when there is none
	return t
}

// name returns s when it is a plain name, or none, and masking finds nothing in it.
func (l *Log) name(s string) string {
	if s != "" && !plainName.MatchString(s) || l.o.Clean(s) != s {
		return masked
	}
	return s
}

// clean returns what a client says of itself, masked and bounded.
func (l *Log) clean(s string) string { return proxy.Clip(l.o.Clean(s), 128) }

// made is what is read of a write's answer.
type made struct {
	ID     json.Number `json:"id"`
	Number json.Number `json:"number"`
	SHA    string      `json:"sha"`
	URL    string      `json:"html_url"`
	Commit struct {
		SHA string `json:"sha"`
		URL string `json:"html_url"`
	} `json:"commit"`
	FullName string `json:"full_name"`
}

// commitSHA is a SHA-1 or, in repositories of that format, a SHA-256.
var commitSHA = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// maxObjectBody bounds the answers that an object is looked for in; those of
// writes are small.
const maxObjectBody = 1 << 20

// objectOf reads what a write made or changed from Gitea's answer, which has
// been masked; nil when the answer names nothing.
func objectOf(c *proxy.Call, res *proxy.Result) *Object {
	if res.Kind != proxy.BodyJSON || len(res.Body) > maxObjectBody {
		return nil
	}
	var m made
	if json.Unmarshal(res.Body, &m) != nil {
		return nil
	}
	// No name or title of the object: they are what a client wrote.
	o := &Object{Kind: kindOf(c.Op, res.Path), URL: webPath(m.URL)}
	o.ID, _ = m.ID.Int64() // 0 when it is none
	o.Number, _ = m.Number.Int64()
	// Writes of files answer with the commit that they made.
	if m.SHA == "" && m.Commit.SHA != "" {
		m.SHA, o.Kind, o.URL = m.Commit.SHA, "commit", webPath(m.Commit.URL)
	}
	if commitSHA.MatchString(m.SHA) {
		o.SHA = m.SHA
	}
	owner, repo, _ := strings.Cut(m.FullName, "/")
	if !plainName.MatchString(owner) || !plainName.MatchString(repo) {
		o.URL = withoutArguments(o.URL, &c.Wire)
	}
	if o.ID == 0 && o.Number == 0 && o.SHA == "" && o.URL == "" {
		return nil
	}
	return o
}

// kindOf names what an operation is about: the last segment of its route that is no
// parameter, in the singular. Of a route that the catalog lacks only the path as sent
// is known, where a segment may be any text.
func kindOf(op *proxy.Tool, path string) string {
	if op == nil {
		switch {
		case strings.Contains(path, "/issues"):
			return "issue"
		case strings.Contains(path, "/pulls"):
			return "pull"
		}
		return "object"
	}
	segments := strings.Split(op.Path, "/")
	for _, seg := range slices.Backward(segments) {
		if seg == "" || strings.HasPrefix(seg, "{") {
			continue
		}
		switch {
		case strings.HasSuffix(seg, "ies"):
			return seg[:len(seg)-3] + "y"
		case seg == "branches":
			return "branch"
		case strings.HasSuffix(seg, "s") && seg != "contents":
			return seg[:len(seg)-1]
		}
		return seg
	}
	return "object"
}

// withoutArguments masks the segments of a path that repeat a value of the call: a
// tag, a page or a branch may be named like a secret. The names of the target are
// recorded anyway.
func withoutArguments(path string, w *proxy.Wire) string {
	var values []string
	for _, list := range [][]proxy.Field{w.Values, w.Query, w.Body} {
		for i := range list {
			if !slices.Contains([]string{"owner", "repo", "org", "username"}, list[i].Argument()) {
				values = texts(values, list[i].Value, 8)
			}
		}
	}
	segments := strings.Split(path, "/")
	for i, seg := range segments {
		plain, err := url.PathUnescape(seg)
		// Either may be a part of the other: Gitea makes some names from longer texts.
		repeats := func(v string) bool { return strings.Contains(v, plain) || strings.Contains(plain, v) }
		// Shorter parts are in many texts by chance, such as a number or "src".
		if err != nil || len(plain) > 3 && slices.ContainsFunc(values, repeats) {
			segments[i] = masked
		}
	}
	return strings.Join(segments, "/")
}

// texts appends the strings in v that are long enough to identify something. Depth and number
// are bounded, as a call chooses both.
func texts(out []string, v any, depth int) []string {
	switch v := v.(type) {
	case string:
		if len(v) > 3 {
			out = append(out, v)
		}
	case []any:
		for _, item := range v[:min(len(v), 1000)] {
			if depth > 0 {
				out = texts(out, item, depth-1)
			}
		}
	case map[string]any:
		for _, item := range v {
			if depth > 0 {
				out = texts(out, item, depth-1)
			}
		}
	}
	return out
}

// webPath returns the path of an absolute URL, "" when it is not plain.
func webPath(s string) string {
	_, rest, ok := strings.Cut(s, "://")
	i := strings.IndexByte(rest, '/')
	if !ok || i < 0 || len(rest)-i > 300 {
		return ""
	}
	path, _, _ := strings.Cut(rest[i:], "?")
	if strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return path
}

package catalog

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"aegis/proxy"
)

// rawName is the tool that reaches any route.
const rawName = "gitea_api_request"

// rawTool returns gitea_api_request as a team may use it. It has no route of its own:
// resolve says which operation a call of it reaches. Listed with the highest class that a
// call of it can have in this team, as clients decide by the list what to ask their users
// about.
func rawTool(readOnly bool, maxRisk proxy.Risk) *proxy.Tool {
	t := proxy.Tool{
		Name: rawName, Title: "Call any API route", Method: "GET",
		Risk: maxRisk, ReadOnly: readOnly, OpenWorld: !readOnly,
		Description: "Sends one request to the Gitea API, for routes that no other tool offers. " +
			"Prefer the tool of an operation: it checks arguments and is easier to get right. " +
			"The same rules apply to both.",
		Consumes: "application/json", Produces: "application/json", OutputSchema: json.RawMessage(`{}`),
		Offers: proxy.Offers{Fields: true, Cursor: true},
	}
	methods := []string{"GET", "POST", "PUT", "PATCH", "DELETE"}
	if readOnly {
		methods = methods[:1]
		t.Description = "Reads from one route of the Gitea API that no other tool offers. " +
			"Prefer the tool of an operation."
	}
	object := &proxy.Schema{Type: "object", Open: true}
	return ownTool(t,
		own(proxy.Param{
			Name: "method", In: proxy.InQuery, Required: true, Schema: &proxy.Schema{Type: "string", Enum: methods},
		}, wording{}),
		own(proxy.Param{Name: "path", In: proxy.InPath, Required: true, Schema: text(4096)}, wording{
			text: "Path below /api/v1 as plain text, not percent-encoded, without a query: /repos/acme/infra/topics",
			// checkRawPath has a text of its own for each way to break it.
			pattern: `^/[^%?#\\]*$`,
		}),
		own(proxy.Param{Name: "query", In: proxy.InQuery, Schema: object},
			wording{text: "Query parameters; lists repeat the key."}),
		own(proxy.Param{Name: "body", In: proxy.InWhole, Schema: object}, wording{text: "JSON body."}))
}

// rawTarget checks the raw tool's arguments. It returns a tool with the properties of the
// operation they reach, so that the stages below see its real risk, and that operation with
// the request; nil for a route that the catalog lacks. A route whose operation is not
// enabled is answered as if nothing were there. The answer is the same for a hidden
// operation and for a route that does not exist, so the tool cannot be used to find out
// what other teams have.
func (sel *Selection) rawTarget(args proxy.Arguments) (reached, op *proxy.Tool, w proxy.Wire, err error) {
	w.Method, w.Path = args["method"].(string), args["path"].(string)
	query, _ := args["query"].(map[string]any)
	// An empty object is a body, which some routes want; no body at all is something
	// else.
	body, given := args["body"].(map[string]any)
	if err := checkRaw(&w, query, body, given); err != nil {
		return nil, nil, w, err
	}
	// By the routes of the whole catalog, not of what is enabled: a path that reaches a
	// hidden operation must not be taken for an unknown one.
	found, values := sel.set.routes().find(w.Method, w.Path)
	switch {
	case found == nil && sel.open:
		reached = sel.derived(&proxy.Tool{
			// Nothing is known of it, so it counts as the worst that it can be.
			Method: w.Method, Consumes: "application/json",
			Risk: proxy.R4, Destructive: w.Method != "GET", OpenWorld: true,
		})
	case found == nil || sel.enabled[found.Name] == nil:
		return nil, nil, w, proxy.NewError(proxy.KindUnknownTool,
			"no operation with this method and path is available here", nil)
	// A body of JSON could not carry the file.
	case strings.HasPrefix(found.Consumes, "multipart/"):
		var report problems
		report.add("path", "is a file upload; use the tool "+found.Name)
		return nil, nil, w, report.err(rawName)
	default:
		op = sel.enabled[found.Name]
		if err := checkSpelling(op, body); err != nil {
			return nil, nil, w, err
		}
		reached = sel.derived(op)
		for name, v := range values {
			w.Values = append(w.Values, proxy.Field{Name: name, In: proxy.InPath, Value: v})
		}
	}
	w.Query, w.Body = fields(proxy.InQuery, query), fields(proxy.InBody, body)
	if given {
		w.Sends = proxy.InBody
	}
	for _, list := range [][]proxy.Field{w.Values, w.Query, w.Body} {
		inOrder(op, list)
	}
	return reached, op, w, nil
}

// checkRaw refuses what the raw tool never sends. These hold for every route, before it is
// known which operation it is: what the request means must not depend on how a server
// forgives.
func checkRaw(w *proxy.Wire, query, body map[string]any, given bool) error {
	var report problems
	checkRawPath(&report, w.Path)
	checkRawQuery(&report, query)
	seen := make(map[string]bool, len(body))
	for key := range body {
		name := foldName(key)
		if name == "sudo" { // Gitea takes it from forms; no operation has such a member
			report.add("body", "must not have a member sudo")
		}
		if seen[name] {
			report.add("body", "must not have two members whose names differ in case alone")
		}
		seen[name] = true
	}
	// Proxies drop it or refuse the request.
	if given && w.Method == "GET" {
		report.add("body", "must be absent with GET")
	}
	return report.err(rawName)
}

// foldName returns the form that Gitea's decoder of JSON gives to member names, which are
// the same to it in any case, a long s and the sign for Kelvin included.
func foldName(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// checkSpelling refuses members that are not spelled as the operation's own, and mean
// them nevertheless: a person who is asked, and every rule, reads the exact names.
func checkSpelling(op *proxy.Tool, body map[string]any) error {
	var report problems
	known := map[string]string{}
	for i := range op.Params {
		if p := &op.Params[i]; p.In == proxy.InBody {
			known[foldName(p.Wire)] = p.Wire
		}
	}
	for key := range body {
		if name := known[foldName(key)]; name != "" && name != key {
			report.add("body", "must spell its member "+name+" so")
		}
	}
	return report.err(rawName)
}

// fields returns the members of an object as they stand. The order of a map is none;
// inOrder makes one.
func fields(in proxy.In, object map[string]any) []proxy.Field {
	out := make([]proxy.Field, 0, len(object))
	for name, v := range object {
		out = append(out, proxy.Field{Name: name, In: in, Value: v})
	}
	return out
}

// inOrder sorts values as the operation's parameters are, and what it lacks, or all
// of an unknown operation, by name behind them.
func inOrder(op *proxy.Tool, list []proxy.Field) {
	place := func(f *proxy.Field) int {
		if op == nil {
			return 0
		}
		i := slices.IndexFunc(op.Params, func(p proxy.Param) bool { return p.In == f.In && p.Wire == f.Name })
		if i < 0 {
			return len(op.Params)
		}
		return i
	}
	slices.SortFunc(list, func(a, b proxy.Field) int {
		return cmp.Or(cmp.Compare(place(&a), place(&b)), strings.Compare(a.Name, b.Name))
	})
}

// derived returns the raw tool with everything that op is, but its name and its way of
// taking arguments. Limits, confirmation and masking then see the operation, while clients
// and records see the tool that was called.
func (sel *Selection) derived(op *proxy.Tool) *proxy.Tool {
	t := *op
	t.Name, t.CanonicalName, t.Version = sel.raw.Name, sel.raw.CanonicalName, sel.raw.Version
	t.Domain = cmp.Or(op.Domain, sel.raw.Domain)
	t.Title, t.Description = sel.raw.Title, sel.raw.Description
	t.Path, t.Params = "", sel.raw.Params
	t.InputSchema, t.ListSchema, t.OutputSchema = sel.raw.InputSchema, sel.raw.ListSchema, sel.raw.OutputSchema
	t.Offers, t.Slim, t.Example = sel.raw.Offers, nil, nil
	return &t
}

// checkRawPath refuses every spelling that could mean another route than the
// one the router sees.
func checkRawPath(report *problems, path string) {
	switch {
	case strings.Contains(path, "://") || !strings.HasPrefix(path, "/"):
		report.add("path", "must be a path below /api/v1 that begins with a slash, not a URL")
	case strings.ContainsAny(path, `%?#\`):
		report.add("path", "must not hold a percent sign, question mark, number sign or backslash; "+
			"it is plain text, and the query has its own argument")
	case strings.ContainsFunc(path, func(r rune) bool { return r == unicode.ReplacementChar || unicode.IsControl(r) }):
		report.add("path", "must not hold control characters")
	case strings.Contains(path, "//") || strings.HasSuffix(path, "/"):
		report.add("path", "must not have empty segments or a slash at its end")
	}
	// A model that has read Gitea's own documentation writes it so.
	lower := strings.ToLower(path)
	if strings.HasPrefix(lower, "/api/v1/") || lower == "/api/v1" {
		report.add("path", "must not repeat /api/v1")
	}
	// Three dots are a segment too, which some file systems take for two.
	for _, seg := range strings.Split(path, "/") {
		if seg != "" && strings.Trim(seg, ".") == "" {
			report.add("path", "must not have segments of dots")
			return
		}
	}
}

// checkRawQuery refuses query keys that steer authentication, in any spelling that the
// server might forgive. Gitea reads a credential and a login to act as from the query
// before anything else of the request.
func checkRawQuery(report *problems, query map[string]any) {
	if len(query) > 50 {
		report.add("query", "must have at most 50 keys")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(query)) {
		at := join("query", key)
		// As forgiving as any server may be.
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "sudo", "token", "access_token":
			report.add(at, "is never accepted: Aegis holds the credential")
			continue
		}
		if key == "" || strings.Trim(key, alphanumeric+"_.-[]") != "" || len(key) > 100 {
			report.add(at, "is no name of a query parameter")
			continue
		}
		checkRawValue(report, at, query[key])
	}
}

// checkRawValue refuses what a query cannot carry: objects, and lists in lists.
func checkRawValue(report *problems, at string, v any) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, item := range list {
		switch item.(type) {
		case nil, string, bool, json.Number:
		default:
			report.add(at, "must be a string, number, boolean or a list of these")
			return
		}
	}
}

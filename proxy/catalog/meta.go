package catalog

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
	"aegis/spec"
)

// The tools of search mode.
const (
	searchName   = "gitea_search_tools"
	describeName = "gitea_describe_tool"
	callName     = "gitea_call_tool"
)

// defaultHits is the number of tools that a search returns, maxHits the most.
const (
	defaultHits = 8
	maxHits     = 25
)

// metaTools returns the three tools of search mode by name. On demand, as only endpoints in
// search mode need them.
var metaTools = sync.OnceValue(func() map[string]*proxy.Tool {
	name := own(proxy.Param{Name: "name", Required: true, Schema: text(100)}, wording{text: "Exact name of the tool."})
	boolean, one, most := &proxy.Schema{Type: "boolean"}, int64(1), int64(maxHits)
	out := map[string]*proxy.Tool{}
	for _, t := range []*proxy.Tool{
		ownTool(proxy.Tool{
			Name: callName, Title: "Call a tool", Risk: proxy.R4,
			Description: "Runs one of Gitea's tools by name, under the same rules as a direct call. " +
				"Find the name with " + searchName + " and its arguments with " + describeName + ".",
		}, name,
			// Without a type for the check: see innerArguments.
			own(proxy.Param{Name: "arguments", Schema: &proxy.Schema{Open: true}},
				wording{text: "The tool's arguments."})),
		ownTool(proxy.Tool{
			Name: describeName, Title: "Describe a tool", ReadOnly: true,
			Description: "Returns a tool's arguments as JSON Schema, its risk, the token scopes it needs and, " +
				"where there is one, an example. Do this before the first call.",
		}, name,
			own(proxy.Param{Name: "output", Schema: boolean},
				wording{text: "Also the schema of the result's data (long).", preset: "false"})),
		ownTool(proxy.Tool{
			Name: searchName, Title: "Search tools", ReadOnly: true,
			Description: "Finds the Gitea tools for a task, best first. Say the task in a few words: " +
				`"close issue", "who approved the pull request", "download job log". ` +
				"There are hundreds: repositories, files, issues, pull requests, releases, actions, packages, " +
				"projects, wikis, organizations, users, administration.",
		},
			own(proxy.Param{Name: "query", Required: true, Schema: text(500)},
				wording{text: "The task in a few English words."}),
			own(proxy.Param{Name: "domain", Schema: &proxy.Schema{Type: "string", Enum: spec.Domains()}},
				wording{text: "Only this part of Gitea."}),
			own(proxy.Param{Name: "read_only", Schema: boolean},
				wording{text: "Only tools that change nothing.", preset: "false"}),
			own(proxy.Param{Name: "limit", Schema: &proxy.Schema{Type: "integer", Minimum: &one, Maximum: &most}},
				wording{text: "Number of tools.", preset: strconv.Itoa(defaultHits)})),
	} {
		t.ListSchema = nil // the bounds of these few are worth their tokens in the list
		out[t.Name] = t
	}
	return out
})

// isMeta reports whether a name is that of a tool of search mode.
func isMeta(name string) bool { return metaTools()[name] != nil }

// meta answers search and describe, and turns gitea_call_tool into the call that it asks
// for. They are answered here, above limits and policy: they read nothing of Gitea's and
// name enabled tools alone.
func (sel *Selection) meta(ctx context.Context, c *proxy.Call, next proxy.Handler) (*proxy.Result, error) {
	c.Tool = metaTools()[c.Name]
	args, _, err := sel.set.validate(c.Tool, c.RawArgs, grants{})
	if err != nil {
		return nil, err
	}
	c.Args = args
	name, _ := args["name"].(string)
	switch c.Name {
	case searchName:
		return answer(sel.search(args))
	case describeName:
		t, err := sel.operation(name)
		if err != nil {
			return nil, err
		}
		return answer(describe(t, args["output"] == true))
	}
	inner, err := innerArguments(c.RawArgs)
	if err != nil {
		return nil, err
	}
	if _, err := sel.operation(name); err != nil {
		return nil, err // also for the tools of search mode: they do not call each other
	}
	// From here on the call is the inner one, for the audit, the limits and the policy
	// too.
	c.Name, c.RawArgs, c.Args = name, inner, nil
	return sel.dispatch(ctx, c, next)
}

// innerArguments returns the arguments object of gitea_call_tool as it was sent. Models
// sometimes send the object as a string of JSON; nothing is lost by reading it. They are
// checked against the inner tool later, as bytes, so that nothing is lost by decoding them
// twice.
func innerArguments(raw json.RawMessage) (json.RawMessage, error) {
	inner := jsonscan.Member(raw, "arguments")
	if jsonscan.Kind(inner) == '"' {
		inner = []byte(jsonscan.Unquote(inner))
		if err := checkText(inner); err != nil {
			return nil, proxy.NewError(proxy.KindInvalidArguments, "arguments must be an object", nil)
		}
	}
	return inner, nil
}

// Target returns the tool that a call of this name with these arguments means:
// the inner one of gitea_call_tool, and for the raw tool the operation that its
// method and path reach. It is nil for a call that will be refused, and for the
// tools that ask Gitea nothing. A tool without OperationID is a route that the
// catalog lacks.
func (sel *Selection) Target(name string, args json.RawMessage) *proxy.Tool {
	if sel.mode == "search" && isMeta(name) {
		if name != callName {
			return nil
		}
		outer, _, err := sel.set.validate(metaTools()[callName], args, grants{})
		if err != nil {
			return nil
		}
		name, _ = outer["name"].(string)
		if args, err = innerArguments(args); err != nil {
			return nil
		}
	}
	t, err := sel.operation(name)
	if err != nil {
		return nil
	}
	if t != sel.raw {
		return t
	}
	// Whether they may be given is for the call itself; here only the route matters.
	raw, _, err := sel.set.validate(t, args, grants{sudo: true, code: true})
	if err != nil {
		return nil
	}
	if t, _, _, err = sel.rawTarget(raw); err != nil {
		return nil
	}
	return t
}

// found is one tool in a search result.
type found struct {
	Name        string   `json:"name"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Risk        string   `json:"risk"`
	ReadOnly    bool     `json:"read_only"`
	Required    []string `json:"required,omitempty"`
	Optional    []string `json:"optional,omitempty"`
}

// searchAnswer is the answer of gitea_search_tools.
type searchAnswer struct {
	Tools []found `json:"tools"`
	// Total is the number of tools that match at all.
	Total int    `json:"total"`
	Hint  string `json:"hint,omitempty"`
}

// search answers gitea_search_tools. Names of arguments are part of it, so that many
// calls need no description first.
func (sel *Selection) search(args proxy.Arguments) searchAnswer {
	query, _ := args["query"].(string)
	limit := defaultHits
	if n, ok := args["limit"].(json.Number); ok {
		if v, err := n.Int64(); err == nil {
			limit = int(v)
		}
	}
	hits := sel.Search(query, args["domain"], args["read_only"] == true)
	out := searchAnswer{Tools: []found{}, Total: len(hits)}
	for _, t := range hits[:min(limit, len(hits))] {
		f := found{
			Name: t.Name, Title: t.Title, Description: t.Description, Risk: t.Risk.String(), ReadOnly: t.ReadOnly,
		}
		for i := range t.Params {
			switch p := &t.Params[i]; {
			case p.Fixed != "": // to clients of a binding it does not exist
			case p.Required:
				f.Required = append(f.Required, p.Name)
			default:
				f.Optional = append(f.Optional, p.Name)
			}
		}
		out.Tools = append(out.Tools, f)
	}
	if len(hits) == 0 {
		out.Hint = "Nothing matches. Use other words, or leave out domain and read_only."
	}
	return out
}

// Search ranks the enabled tools for a task, best first. domain is a string or
// nil for all.
func (sel *Selection) Search(query string, domain any, readOnly bool) []*proxy.Tool {
	hits := sel.set.index().search(query, func(t *proxy.Tool) bool {
		return sel.enabled[t.Name] != nil && (domain == nil || domain == t.Domain) && (!readOnly || t.ReadOnly)
	})
	out := make([]*proxy.Tool, len(hits))
	for i := range hits {
		out[i] = sel.enabled[hits[i].tool.Name] // as this selection describes it
	}
	return out
}

// description is the answer of gitea_describe_tool.
type description struct {
	Name              string          `json:"name"`
	CanonicalName     string          `json:"canonical_name"`
	Version           string          `json:"version"`
	Domain            string          `json:"domain"`
	Title             string          `json:"title"`
	Description       string          `json:"description"`
	OperationID       string          `json:"operation_id,omitempty"`
	Method            string          `json:"method,omitempty"`
	Path              string          `json:"path,omitempty"`
	Risk              string          `json:"risk"`
	Scopes            []string        `json:"scopes"`
	ReadOnly          bool            `json:"read_only"`
	Destructive       bool            `json:"destructive"`
	Idempotent        bool            `json:"idempotent"`
	OpenWorld         bool            `json:"open_world"`
	Paginated         bool            `json:"paginated"`
	CredentialIssuing bool            `json:"credential_issuing,omitempty"`
	BasicAuthOnly     bool            `json:"basic_auth_only,omitempty"`
	Deprecated        bool            `json:"deprecated,omitempty"`
	ReplacedBy        string          `json:"replaced_by,omitempty"`
	SlimFields        []string        `json:"slim_fields,omitempty"`
	InputSchema       json.RawMessage `json:"input_schema"`
	Example           json.RawMessage `json:"example,omitempty"`
	OutputSchema      json.RawMessage `json:"output_schema,omitempty"`
}

// describe answers gitea_describe_tool. The schema of the result is left out unless it
// is asked for: it is mostly longer than all the rest.
func describe(t *proxy.Tool, output bool) description {
	d := description{
		Name: t.Name, CanonicalName: t.CanonicalName, Version: t.Version,
		Domain: t.Domain, Title: t.Title, Description: t.Description,
		OperationID: t.OperationID, Method: t.Method, Path: boundPath(t),
		Risk: t.Risk.String(), Scopes: append([]string{}, t.Scopes...), // never null
		ReadOnly: t.ReadOnly, Destructive: t.Destructive, Idempotent: t.Idempotent, OpenWorld: t.OpenWorld,
		Paginated:         t.Paging == proxy.PagingPage || t.Paging == proxy.PagingPerPage,
		CredentialIssuing: t.CredentialIssuing, BasicAuthOnly: t.BasicAuthOnly,
		Deprecated: t.Deprecated, ReplacedBy: t.ReplacedBy,
		SlimFields: t.Slim, InputSchema: t.InputSchema, Example: t.Example,
	}
	if t.Name == rawName {
		d.Method = "" // it has no route of its own
	}
	if output {
		d.OutputSchema = t.OutputSchema
	}
	return d
}

// answer wraps what Aegis says itself as a result.
func answer(v any) (*proxy.Result, error) {
	body, err := proxy.Encode(v)
	if err != nil {
		return nil, err
	}
	return &proxy.Result{
		Status: http.StatusOK, Kind: proxy.BodyJSON, Body: body, ContentType: "application/json", Source: "aegis",
	}, nil
}

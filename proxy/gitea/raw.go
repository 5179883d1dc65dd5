package gitea

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"aegis/proxy"
)

// The arguments of the raw tool, see [isRaw].
const (
	rawMethod = "method"
	rawPath   = "path"
	rawQuery  = "query"
	rawBody   = "body"
)

// isRaw reports whether a tool reaches any route: it has no path template of
// its own, and its arguments are
//
//	method  GET, HEAD, POST, PUT, PATCH or DELETE; the tool's own Method when absent
//	path    the path below /api/v1, plain text: Aegis escapes it
//	query   an object of strings, numbers, booleans and lists of these
//	body    any JSON value, or a string where the tool consumes text/plain
//
// Everything else about the tool (ReadOnly, Paging, Consumes, Produces) is that
// of the operation which method and path match, when they match one.
func isRaw(tool *proxy.Tool) bool { return tool.Path == "" }

// fillRaw builds the request of the raw tool.
func (r *request) fillRaw(call *proxy.Call) error {
	if v, given := call.Args[rawMethod]; given {
		r.method, _ = v.(string)
	}
	r.method = strings.ToUpper(r.method)
	switch r.method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return invalid(rawMethod, "must be GET, HEAD, POST, PUT, PATCH or DELETE")
	}
	r.repeatable = call.Tool.ReadOnly && (r.method == http.MethodGet || r.method == http.MethodHead)
	if err := r.fillRawPath(call.Args[rawPath]); err != nil {
		return err
	}
	if err := r.fillRawQuery(call.Tool, call.Args[rawQuery]); err != nil {
		return err
	}
	return r.fillRawBody(call.Tool, call.Args)
}

// fillRawPath escapes the path segment by segment.
func (r *request) fillRawPath(v any) error {
	path, _ := v.(string)
	if !strings.HasPrefix(path, "/") {
		return invalid(rawPath, "must be a path below /api/v1 that begins with '/', such as /repos/acme/infra")
	}
	if strings.ContainsAny(path, "%?#\\") {
		return invalid(rawPath, "must not hold '%', '?', '#' or '\\'; it is plain text, and the query has an argument of its own")
	}
	if rule := checkRepoPath(path[1:]); rule != "" {
		return invalid(rawPath, rule)
	}
	if rule := checkGitDir(path[1:]); rule != "" {
		return invalid(rawPath, rule)
	}
	var b strings.Builder
	escapeInto(&b, path, true)
	r.path = b.String()
	return nil
}

// fillRawQuery builds the query in the order of the keys.
func (r *request) fillRawQuery(tool *proxy.Tool, v any) error {
	query, ok := v.(map[string]any)
	if v != nil && !ok {
		return invalid(rawQuery, "must be an object")
	}
	r.setRawPaging(tool.Paging, &query)
	keys := make([]string, 0, len(query))
	for key := range query {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var b strings.Builder
	for _, key := range keys {
		if key == "" || isSteering(strings.TrimSpace(key)) {
			return invalid(rawQuery, "must not hold an empty key, sudo, token or access_token")
		}
		if rule := checkText(key); rule != "" {
			return invalid(rawQuery, "a key "+rule)
		}
		if query[key] == nil {
			continue
		}
		p := proxy.Param{Name: rawQuery, Wire: key, In: proxy.InQuery, Multi: true}
		if err := writeQuery(&b, &p, query[key]); err != nil {
			return err
		}
	}
	return r.setQuery(b.String())
}

// setRawPaging completes page and size of a paged operation. The caller's map
// is copied before it is changed.
func (r *request) setRawPaging(paging proxy.Paging, query *map[string]any) {
	if paging != proxy.PagingPage {
		return
	}
	number := func(key string, fallback int) int {
		text, _ := scalar((*query)[key])
		if n, err := strconv.Atoi(text); err == nil && n > 0 {
			return n
		}
		return fallback
	}
	r.page, r.limit = number("page", 1), number("limit", defaultLimit)
	full := make(map[string]any, len(*query)+2)
	for k, v := range *query {
		full[k] = v
	}
	full["page"] = json.Number(strconv.Itoa(r.page))
	full["limit"] = json.Number(strconv.Itoa(r.limit))
	*query = full
}

// fillRawBody encodes the body as it is.
func (r *request) fillRawBody(tool *proxy.Tool, args proxy.Arguments) error {
	v, given := args[rawBody]
	if !given {
		return nil
	}
	if r.method == http.MethodGet || r.method == http.MethodHead {
		return invalid(rawBody, "must be absent with GET and HEAD")
	}
	if err := checkBodyPaths(strings.Contains(r.path, "contents"), v); err != nil {
		return err
	}
	return r.setWhole(tool, v)
}

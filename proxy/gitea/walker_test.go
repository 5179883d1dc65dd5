package gitea_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/catalog"
	"aegis/proxy/envelope"
	"aegis/proxy/gitea"
	"aegis/spec"
)

// builtin returns the built-in tools by operation.
func builtin(t testing.TB) map[string]*proxy.Tool {
	t.Helper()
	tools, err := loadBuiltin()
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// loadBuiltin loads the catalog once: no test changes it.
var loadBuiltin = sync.OnceValues(func() (map[string]*proxy.Tool, error) {
	cat, err := spec.Builtin()
	if err != nil {
		return nil, err
	}
	set, err := catalog.Load(cat)
	if err != nil {
		return nil, err
	}
	tools := map[string]*proxy.Tool{}
	for _, tool := range set.Tools() {
		tools[tool.OperationID] = tool
	}
	return tools, nil
})

// walker runs the steps of a walk.
type walker struct {
	*testing.T
	client      *gitea.Client
	tools       map[string]*proxy.Tool
	identity    *proxy.Identity
	owner, repo string
}

type object = map[string]any

// try runs one operation with the repository's arguments filled in.
func (w *walker) try(operation string, args object) (*proxy.Result, error) {
	w.Helper()
	tool := w.tools[operation]
	if tool == nil {
		w.Fatalf("the catalog has no %s", operation)
	}
	full := object{}
	for i := range tool.Params {
		switch p := &tool.Params[i]; {
		case p.In == proxy.InPath && p.Wire == "owner":
			full[p.Name] = w.owner
		case p.In == proxy.InPath && p.Wire == "repo":
			full[p.Name] = w.repo
		}
	}
	for name, v := range args {
		full[name] = v
	}
	text, err := json.Marshal(full)
	if err != nil {
		w.Fatal(err)
	}
	var decoded proxy.Arguments
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	if err := dec.Decode(&decoded); err != nil {
		w.Fatal(err)
	}
	c := &proxy.Call{Tool: tool, Args: decoded, Identity: w.identity}
	c.Resolve(tool)
	res, err := w.client.Handle(context.Background(), c)
	if err == nil {
		w.checkSchema(c, *res)
	}
	return res, err
}

// checkSchema renders a copy of a result with structured content, which must fit the output schema
// of its tool.
func (w *walker) checkSchema(c *proxy.Call, res proxy.Result) {
	w.Helper()
	cursors, err := envelope.NewCursors("")
	if err != nil {
		w.Fatal(err)
	}
	results := config.Default().Results
	results.Structured = true
	stage := envelope.New(results, cursors).RenderLocal()
	h := stage(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) { return &res, nil }))
	if _, err := h.Handle(context.Background(), c); err != nil || c.Stats.SchemaMismatch != "" {
		w.Errorf("%s breaks its output schema at %q (%v): %.200s", c.Tool.Name, c.Stats.SchemaMismatch, err, res.Body)
	}
}

// step is try for what has to succeed with this status.
func (w *walker) step(operation string, status int, args object) *proxy.Result {
	w.Helper()
	res, err := w.try(operation, args)
	if err != nil {
		w.Fatalf("%s: %v", operation, err)
	}
	if res.Status != status {
		w.Fatalf("%s: status %d, want %d: %.300s", operation, res.Status, status, res.Body)
	}
	w.Logf("%-28s %d %s %s", w.tools[operation].Name, res.Status, res.Method, res.Path)
	return res
}

// refused is try for what has to fail with this kind.
func (w *walker) refused(operation string, kind proxy.Kind, args object) *proxy.Error {
	w.Helper()
	res, err := w.try(operation, args)
	if err == nil {
		w.Fatalf("%s: status %d, want %s", operation, res.Status, kind)
	}
	e := proxy.AsError(err)
	if e.Kind != kind {
		w.Fatalf("%s: %v, want %s", operation, err, kind)
	}
	w.Logf("%-28s %d %s: %s", w.tools[operation].Name, e.Status, e.Kind, e.Public)
	return e
}

// decode returns the body of a step as T.
func decode[T any](w *walker, res *proxy.Result) T {
	w.Helper()
	var v T
	if res.Kind != proxy.BodyJSON {
		w.Fatalf("%s %s: no JSON but kind %d", res.Method, res.Path, res.Kind)
	}
	if err := json.Unmarshal(res.Body, &v); err != nil {
		w.Fatal(err)
	}
	return v
}

// bodyName returns the argument that is sent as this body property.
func (w *walker) bodyName(operation, wire string) string {
	for _, p := range w.tools[operation].Params {
		if p.In == proxy.InBody && p.Wire == wire {
			return p.Name
		}
	}
	w.Fatalf("%s has no body property %s", operation, wire)
	return ""
}

// eventually waits until the server has caught up with its own repository.
func (w *walker) eventually(operation string, args object) *proxy.Result {
	w.Helper()
	var last error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		res, err := w.try(operation, args)
		if err == nil {
			w.Logf("%-28s %d %s %s", w.tools[operation].Name, res.Status, res.Method, res.Path)
			return res
		}
		last = err
	}
	w.Fatalf("%s: %v", operation, last)
	return nil
}

package envelope_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/envelope"
	"aegis/spec"
)

// structured runs a call of a tool with an output schema, whose result carries structured
// content.
func structured(t *testing.T, schema string, kind proxy.BodyKind, body string) (*proxy.Result, proxy.Call) {
	t.Helper()
	cfg := limits(100, 60000)
	cfg.Structured = true
	h := newHarness(t, cfg, kind, []byte(body))
	h.call.Tool = &proxy.Tool{Name: "gitea_issue_list", OutputSchema: json.RawMessage(schema)}
	c := h.call
	res, err := h.stage.Handle(context.Background(), &c)
	if err != nil {
		t.Fatal(err)
	}
	return res, c
}

// TestResultsThatBreakTheirSchema keep their data and go out without structured content; what
// is noted of them has no word of the data.
func TestResultsThatBreakTheirSchema(t *testing.T) {
	t.Parallel()
	const object = `{"type":["object","null"],"properties":{"title":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}}}}`
	for name, tc := range map[string]struct {
		schema string
		kind   proxy.BodyKind
		body   string
		at     string // "": it fits
	}{
		"fits":                  {object, proxy.BodyJSON, `{"title":"s3cret","tags":["a"],"more":1}`, ""},
		"null fits":             {object, proxy.BodyEmpty, "", ""},
		"anything":              {`{}`, proxy.BodyJSON, `7`, ""},
		"nothing promised":      {``, proxy.BodyJSON, `7`, ""},
		"null for text":         {`{"type":"string"}`, proxy.BodyEmpty, "", "root"},
		"empty text":            {`{"type":"string"}`, proxy.BodyText, "", ""},
		"text for an object":    {object, proxy.BodyText, "s3cret", "root"},
		"a member":              {object, proxy.BodyJSON, `{"title":["s3cret"]}`, "/properties/title"},
		"an item":               {object, proxy.BodyJSON, `{"tags":["a",{"validating /s3cret: ":"s3cret"}]}`, "/properties/tags/items"},
		"a list for one":        {object, proxy.BodyJSON, `[{"title":"s3cret"}]`, "root"},
		"none of two":           {`{"anyOf":[{"type":"string"},{"type":"null"}]}`, proxy.BodyJSON, `["s3cret"]`, "root"},
		"something for nothing": {`{"type":"null"}`, proxy.BodyJSON, `{"title":"s3cret"}`, "root"},
		"an unusual number":     {object, proxy.BodyJSON, `{"size":1e999}`, "the data cannot be decoded"},
		"a schema that is none": {`{"type":7}`, proxy.BodyJSON, `{}`, "the schema cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, c := structured(t, tc.schema, tc.kind, tc.body)
			if c.Stats.SchemaMismatch != tc.at || (res.Structured == nil) != (tc.at != "") {
				t.Errorf("mismatch %q, want %q; structured content %q", c.Stats.SchemaMismatch, tc.at, res.Structured)
			}
			want := map[proxy.BodyKind]string{proxy.BodyEmpty: "null", proxy.BodyText: fmt.Sprintf("%q", tc.body), proxy.BodyJSON: tc.body}
			if !strings.HasSuffix(string(res.Text), `"data":`+want[tc.kind]+"}") {
				t.Errorf("the data is not in %s", res.Text)
			}
		})
	}
}

// TestSchemasAreCheckedByManyAtOnce: the first calls of a tool may come together.
func TestSchemasAreCheckedByManyAtOnce(t *testing.T) {
	t.Parallel()
	cfg := limits(100, 60000)
	cfg.Structured = true
	cursors, err := envelope.NewCursors("k")
	if err != nil {
		t.Fatal(err)
	}
	stage := envelope.New(cfg, cursors).Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		return &proxy.Result{Status: 200, Kind: proxy.BodyJSON, Body: []byte(`[1]`)}, nil
	}))
	tool := &proxy.Tool{Name: "gitea_issue_list", OutputSchema: json.RawMessage(`{"type":"object"}`)}
	var wait sync.WaitGroup
	found := make([]string, 8)
	for i := range found {
		c := proxy.Call{Identity: &proxy.Identity{}, Tool: tool}
		wait.Go(func() {
			if _, err := stage.Handle(context.Background(), &c); err != nil {
				t.Error(err)
			}
			found[i] = c.Stats.SchemaMismatch
		})
	}
	wait.Wait()
	for i, at := range found {
		if at != "root" {
			t.Errorf("call %d: %q", i, at)
		}
	}
}

// TestNothingIsCheckedWithoutStructuredContent: the check costs decoding, which a call without
// structured content does not pay.
func TestNothingIsCheckedWithoutStructuredContent(t *testing.T) {
	t.Parallel()
	h := newHarness(t, limits(100, 60000), proxy.BodyJSON, []byte(`[1]`))
	h.call.Tool = &proxy.Tool{Name: "gitea_issue_list", OutputSchema: json.RawMessage(`{"type":"object"}`)}
	c := h.call
	if res, err := h.stage.Handle(context.Background(), &c); err != nil || res.Structured != nil || c.Stats.SchemaMismatch != "" {
		t.Errorf("%v, %q, %v", res, c.Stats.SchemaMismatch, err)
	}
}

// BenchmarkStructured compares a page of issues with structured content, without, and with
// structured content of a tool that promises nothing, which is not checked.
func BenchmarkStructured(b *testing.B) {
	cat, err := spec.Builtin()
	if err != nil {
		b.Fatal(err)
	}
	var schema json.RawMessage
	for i := range cat.Operations {
		if o := &cat.Operations[i]; o.ID == "issueListIssues" {
			schema = spec.NewExpander(cat).Output(o)
		}
	}
	page := []byte("[" + strings.TrimSuffix(strings.Repeat(`{"id":12,"title":"A title of usual length","labels":[{"id":1,"name":"bug","color":"ff0000"}],`+
		`"user":{"id":7,"login":"alice","full_name":"Alice"},"created_at":"2030-01-01T00:00:00Z","comments":3,"body":"`+strings.Repeat("words ", 40)+`"},`, 90), ",") + "]")
	for _, bc := range []struct {
		name   string
		on     bool
		schema json.RawMessage
	}{{"off", false, schema}, {"unchecked", true, json.RawMessage(`{}`)}, {"checked", true, schema}} {
		b.Run(bc.name, func(b *testing.B) {
			h := newHarness(&testing.T{}, config.Results{MaxItems: 100, MaxChars: 1_000_000, Structured: bc.on}, proxy.BodyJSON, page)
			h.call.Tool = &proxy.Tool{Name: "gitea_issue_list", OutputSchema: bc.schema}
			b.SetBytes(int64(len(page)))
			b.ReportAllocs()
			for b.Loop() {
				c := h.call
				if _, err := h.stage.Handle(context.Background(), &c); err != nil || c.Stats.SchemaMismatch != "" {
					b.Fatal(err, c.Stats.SchemaMismatch)
				}
			}
		})
	}
}

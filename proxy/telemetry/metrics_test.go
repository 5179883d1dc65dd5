package telemetry_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"aegis/proxy"
	"aegis/proxy/telemetry"
)

func scrape(t *testing.T, m *telemetry.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body, err := io.ReadAll(w.Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d, %v", w.Code, err)
	}
	return string(body)
}

func TestState(t *testing.T) {
	t.Parallel()
	m := telemetry.NewMetrics(telemetry.Build{Version: "1.2.3", Catalog: "1.0.0"})
	ok := true
	m.Show(telemetry.State{
		Connections: func() int { return 7 },
		Certificates: func() map[string]telemetry.Certificate {
			return map[string]telemetry.Certificate{"aegis.example.org": {Ends: time.Unix(1_800_000_000, 0), OK: true}, "missing.example.org": {}}
		},
		Reload: func() telemetry.Reload {
			return telemetry.Reload{OK: ok, Loaded: time.Unix(1_700_000_000, 0), Reloads: 3, Failures: 2}
		},
	})
	text := scrape(t, m)
	for _, want := range []string{
		`aegis_build_info{catalog="1.0.0",go_version="go`, "aegis_connections_open 7\n", `aegis_certificate_not_after_timestamp_seconds{host="aegis.example.org"} 1.8e+09`,
		`aegis_certificate_not_after_timestamp_seconds{host="missing.example.org"} 0`, `aegis_certificate_renewal_successful{host="missing.example.org"} 0`,
		`aegis_certificate_renewal_successful{host="aegis.example.org"} 1`, "aegis_config_last_reload_successful 1\n",
		"aegis_config_loaded_timestamp_seconds 1.7e+09\n", "aegis_config_reloads_total 3\n", "aegis_config_reload_failures_total 2\n", "process_open_fds",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	ok = false
	if !strings.Contains(scrape(t, m), "aegis_config_last_reload_successful 0\n") {
		t.Error("a failed reload does not show")
	}
}

// TestLabelsAreFew: whatever clients call themselves, their tools and their
// users, the number of series stays.
func TestLabelsAreFew(t *testing.T) {
	t.Parallel()
	m := telemetry.NewMetrics(telemetry.Build{})
	h := m.Stage()(proxy.HandlerFunc(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		c.Stats.Attempts, c.Stats.MaskHits = 1, map[string]int{"github-token": 2}
		if c.Tool == nil {
			return nil, proxy.NewError(proxy.KindUnknownTool, "no such tool", nil)
		}
		return &proxy.Result{Text: []byte("12345")}, nil
	}))
	var size int
	for i := range 200 {
		name := "tool-" + strings.Repeat("x", i)
		c := &proxy.Call{Name: name, Client: proxy.Client{Name: name, Addr: name}, Identity: &proxy.Identity{Login: name, TokenName: name}}
		if i%2 == 0 {
			c.Tool = &proxy.Tool{Name: name, ReadOnly: true}
		}
		_, _ = h.Handle(context.Background(), c)
		if lines := strings.Count(scrape(t, m), "\naegis_"); i == 1 {
			size = lines
		} else if i > 1 && lines != size {
			t.Fatalf("%d series after call %d, %d before", lines, i, size)
		}
	}
	text := scrape(t, m)
	for _, want := range []string{
		`aegis_calls_total{class="none",kind="unknown_tool",team="default"} 100`, `aegis_calls_total{class="read",kind="ok",team="default"} 100`,
		`aegis_mask_hits_total{rule="github-token"} 400`, `aegis_bytes_total{direction="to_client"} 500`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(text, "tool-") {
		t.Error("a name of a client's became a label")
	}
}

func TestNilCountsNothing(t *testing.T) {
	t.Parallel()
	var m *telemetry.Metrics
	m.Refused("address")
	m.Show(telemetry.State{})
	if m.Stage() != nil {
		t.Error("a stage of no metrics")
	}
}

func TestOnlyMetricsAreServed(t *testing.T) {
	t.Parallel()
	h := telemetry.NewMetrics(telemetry.Build{}).Handler()
	for target, want := range map[string]int{"GET /": 404, "POST /metrics": 405, "GET /debug/pprof/": 404} {
		method, path, _ := strings.Cut(target, " ")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", target, w.Code, want)
		}
	}
}

// TestASchemaMismatchIsCountedAndLogged, by the tool and the place in its schema.
func TestASchemaMismatchIsCountedAndLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	m := telemetry.NewMetrics(telemetry.Build{})
	h := telemetry.Stage(m, nil, zerolog.New(&log))(proxy.HandlerFunc(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		c.Stats.SchemaMismatch = c.Args["at"].(string)
		return &proxy.Result{Text: []byte("{}")}, nil
	}))
	for _, at := range []string{"/properties/title", "", "root"} {
		c := &proxy.Call{RequestID: "r-1", Tool: &proxy.Tool{Name: "gitea_issue_get"}, Args: proxy.Arguments{"at": at}, Identity: &proxy.Identity{}}
		if _, err := h.Handle(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	if want := `aegis_schema_mismatches_total{tool="gitea_issue_get"} 2`; !strings.Contains(scrape(t, m), want) {
		t.Errorf("%s is missing", want)
	}
	if n := strings.Count(log.String(), `"level":"warn"`); n != 2 || !strings.Contains(log.String(), `"tool":"gitea_issue_get","schema_mismatch":"/properties/title"`) {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
}

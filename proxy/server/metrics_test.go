package server_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var metricsListen = regexp.MustCompile(`"listen":"([^"]*)","message":"serving metrics"`)

var metricLine = regexp.MustCompile(`(?m)^([a-z_]+)(\{[^}]*\})? ([0-9.e+-]+)$`)

// servesMetrics returns the address of the metrics, which the log tells.
func servesMetrics(t *testing.T, log *syncBuffer) (at string) {
	t.Helper()
	eventually(t, func() error {
		m := metricsListen.FindStringSubmatch(log.String())
		if m == nil {
			return errors.New("no metrics are served")
		}
		at = m[1]
		return nil
	})
	return at
}

// TestMetrics: what happens is counted, by names that nobody outside chooses.
func TestMetrics(t *testing.T) {
	r := newRig(t, "metrics: {listen: 127.0.0.1:0}\nlimits: {destructive: {rate: 1/h}}\n")
	at := servesMetrics(t, r.log)
	alice := r.connect(aliceToken, "2025-11-25")
	r.call(alice, "gitea_user_get_me", nil)
	r.call(alice, "gitea_repository_get", map[string]any{"owner": "nobody-here", "repo": "nothing-here"})
	for range 2 {
		r.call(alice, "gitea_repository_delete", map[string]any{"owner": "nobody-here", "repo": "nothing-here"})
	}
	get := func(host string) (int, string) {
		req, _ := http.NewRequest(http.MethodGet, "http://"+at+"/metrics", nil)
		req.Host = host
		res, err := direct.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(body)
	}
	want := map[string]string{
		`aegis_calls_total{class="read",kind="ok",team="default"}`:                  "1",
		`aegis_calls_total{class="read",kind="not_found",team="default"}`:           "1",
		`aegis_calls_total{class="destructive",kind="not_found",team="default"}`:    "1",
		`aegis_calls_total{class="destructive",kind="rate_limited",team="default"}`: "1",
		`aegis_limit_refusals_total{bucket="destructive"}`:                          "1",
		`aegis_call_duration_seconds_count{class="destructive"}`:                    "2",
		`aegis_upstream_duration_seconds_count{class="destructive"}`:                "1",
		`aegis_overhead_duration_seconds_count{class="read"}`:                       "2",
		`aegis_upstream_requests_total`:                                             "3",
		`aegis_calls_in_flight`:                                                     "0",
		`aegis_config_last_reload_successful`:                                       "1",
		`aegis_audit_pending_records`:                                               "0",
		`aegis_audit_lag_seconds`:                                                   "0",
	}
	var status int
	var text string
	values := map[string]string{}
	eventually(t, func() error { // a call is counted out after its answer
		status, text = get(at)
		for _, m := range metricLine.FindAllStringSubmatch(text, -1) {
			values[m[1]+m[2]] = m[3]
		}
		for name, n := range want {
			if values[name] != n {
				return fmt.Errorf("%s is %q, want %s", name, values[name], n)
			}
		}
		return nil
	})
	if status != 200 || values["aegis_connections_open"] == "" || values[`aegis_bytes_total{direction="from_gitea"}`] == "0" || !strings.Contains(text, `aegis_build_info{`) || !strings.Contains(text, "go_goroutines") {
		t.Errorf("%d %s", status, text)
	}
	for _, s := range []string{"nobody-here", "gitea_repository", "alice", "probe", "127.0.0.1"} {
		if strings.Contains(text, s) {
			t.Errorf("metrics hold %q", s)
		}
	}
	if status, _ := get("evil.example"); status != http.StatusForbidden {
		t.Errorf("a rebound name reads metrics: %d", status)
	}
	if res, err := direct.Get(r.base + "/metrics"); err != nil || res.StatusCode != http.StatusNotFound {
		t.Errorf("metrics on the main listener: %v, %v", res, err)
	}
}

package config_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"aegis/config"
)

func TestRate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		perSecond float64
		size      int
	}{
		"20/s": {20, 20}, "300/m": {5, 300}, "3600/h": {1, 3600}, "1/h": {1.0 / 3600, 1}, "off": {math.Inf(1), 0},
	} {
		var r config.Rate
		if err := r.UnmarshalText([]byte(text)); err != nil || r.PerSecond() != want.perSecond || r.String() != text || r.Off() != (text == "off") {
			t.Errorf("%q is %v (%v a second), %v", text, r, r.PerSecond(), err)
		}
		if got := (config.Limit{Rate: r}).Size(); got != want.size {
			t.Errorf("%q holds %d, want %d", text, got, want.size)
		}
		if got := (config.Limit{Rate: r, Burst: 7}).Size(); got != 7 {
			t.Errorf("%q with a burst of 7 holds %d", text, got)
		}
	}
	for _, text := range []string{"", "20", "/s", "20/", "20/d", "20/ms", "20 /s", "-1/s", "+1/s", "1.5/s", "0/s", "OFF", "1e3/s", "99999999999999999999/s", "1000000001/s"} {
		r := config.Rate{Count: 3, Per: time.Second}
		if err := r.UnmarshalText([]byte(text)); err == nil || r.Count != 3 {
			t.Errorf("%q is taken for %v", text, r)
		}
	}
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"10.0.0.0/8": "10.0.0.0/8", "192.0.2.7": "192.0.2.7/32", "2001:DB8::/32": "2001:db8::/32", "::1": "::1/128", "::ffff:192.0.2.7": "192.0.2.7/32", "0.0.0.0/0": "0.0.0.0/0",
	} {
		var p config.Prefix
		if err := p.UnmarshalText([]byte(text)); err != nil || p.String() != want {
			t.Errorf("%q is %v, %v; want %s", text, p, err, want)
		}
	}
	for _, text := range []string{"", "10.0.0.1/8", "10.0.0.0/33", "::ffff:10.0.0.0/104", "fe80::1%eth0", "proxy.example", "10.0.0", "10.0.0.0/8 "} {
		var p config.Prefix
		if err := p.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for %v", text, p)
		}
	}
}

// TestEdgeWarnings: what is legal and holds nobody, or has no effect.
func TestEdgeWarnings(t *testing.T) {
	t.Parallel()
	c := mustParse(t, minimal+`limits: {concurrency: {identity: 9, total: 8}}
server: {trusted_proxies: [10.0.0.0/8, "::/0"]}
metrics: {allow_remote: true}
`)
	text := c.Warnings().Error()
	for _, want := range []string{"limits.concurrency.identity", "server.trusted_proxies[1]", "metrics.allow_remote"} {
		if !strings.Contains(text, want) {
			t.Errorf("no warning of %s in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "trusted_proxies[0]") {
		t.Errorf("warns of a private network:\n%s", text)
	}
	mustParse(t, minimal+"metrics: {listen: \":9464\", allow_remote: true}\n")
	mustParse(t, minimal+"metrics: {listen: \"[::1]:9464\"}\n")
	c = mustParse(t, strings.Replace(minimal, "gitea:\n", "gitea:\n  strip_headers: [X-User]\n", 1))
	if text := c.Warnings().Error(); !strings.Contains(text, "gitea.strip_headers") {
		t.Errorf("no warning of headers that nothing strips:\n%s", text)
	}
}

// TestToolLimits are read, shown and read again.
func TestToolLimits(t *testing.T) {
	t.Parallel()
	c := mustParse(t, minimal+"limits: {tools: {gitea_repository_search: {rate: 30/m, burst: 5}, gitea_issue_create: {rate: 1/s}}, team: {rate: off}}\n")
	want := config.Limit{Rate: config.Rate{Count: 30, Per: time.Minute}, Burst: 5}
	if len(c.Limits.Tools) != 2 || c.Limits.Tools["gitea_repository_search"] != want || !c.Limits.Team.Rate.Off() || c.Limits.Address.Burst != 1000 {
		t.Errorf("limits: %+v", c.Limits)
	}
	out, err := config.Effective(c)
	if err != nil || !strings.Contains(string(out), "gitea_repository_search:\n      rate: 30/m\n      burst: 5\n") {
		t.Errorf("%v: %s", err, out)
	}
}

package audit_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aegis/proxy"
	"aegis/proxy/audit"
)

// mixed fills a log with calls of several kinds, over several files.
func mixed(t *testing.T) (*rig, time.Time) {
	cfg := settings()
	cfg.RotateSize = 4 << 10
	r := newRig(t, cfg)
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	at := &clock{at: start}
	r.o.Now = at.now
	r.open()
	for i := range 12 {
		c := newCall()
		if i%3 == 0 {
			c.Identity = &proxy.Identity{Login: "bob", Mode: proxy.ModeOAuth}
		}
		last := answered
		if i%4 == 0 {
			last = failing(&proxy.Error{Kind: proxy.KindForbidden, Status: 403})
		}
		_ = guarded(r.chain(found, last), c)
		at.add(time.Hour)
	}
	r.log.Close()
	return r, start
}

func TestShowFilters(t *testing.T) {
	t.Parallel()
	r, start := mixed(t)
	at, err := audit.Locate([]string{r.path}, true)
	if err != nil || len(at.Sources) < 3 {
		t.Fatalf("%d files, %v", len(at.Sources), err)
	}
	for name, tc := range map[string]struct {
		f    audit.Filter
		want int
	}{
		"all calls":    {audit.Filter{Event: "tool_invocation"}, 12},
		"identity":     {audit.Filter{Event: "tool_invocation", Identity: "bob"}, 4},
		"token name":   {audit.Filter{Event: "tool_invocation", Identity: "ci"}, 8},
		"outcome":      {audit.Filter{Outcome: "forbidden"}, 3},
		"both":         {audit.Filter{Outcome: "forbidden", Identity: "bob"}, 1},
		"tool glob":    {audit.Filter{Event: "tool_invocation", Tool: "gitea_issue_*"}, 12},
		"other tool":   {audit.Filter{Tool: "gitea_repo_*"}, 0},
		"since":        {audit.Filter{Event: "tool_invocation", Since: start.Add(9 * time.Hour)}, 3},
		"until":        {audit.Filter{Event: "tool_invocation", Until: start.Add(2 * time.Hour)}, 2},
		"nobody":       {audit.Filter{Identity: "mallory"}, 0},
		"starts alone": {audit.Filter{Event: "tool_call_started"}, 12},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			skipped, err := audit.Show(at.Sources, tc.f, &audit.Printer{W: &out, JSON: true})
			if err != nil || skipped != 0 {
				t.Fatal(skipped, err)
			}
			if n := strings.Count(out.String(), "\n"); n != tc.want {
				t.Errorf("%d records, want %d:\n%s", n, tc.want, out.String())
			}
		})
	}
}

func TestShowTable(t *testing.T) {
	t.Parallel()
	r, _ := mixed(t)
	at, err := audit.Locate([]string{r.path}, true)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := audit.Show(at.Sources, audit.Filter{Event: "tool_invocation", Outcome: "forbidden", Identity: "bob"}, &audit.Printer{W: &out}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("table:\n%s", out.String())
	}
	if diff := cmp.Diff([]string{"SEQ", "TIME", "EVENT", "IDENTITY", "TOOL", "TARGET", "OUTCOME", "STATUS", "TOTAL"}, strings.Fields(lines[0])); diff != "" {
		t.Error(diff)
	}
	want := []string{"4", "2030-01-01T00:00:00.000", "tool_invocation", "bob", "gitea_issue_create", "acme/site",
		"forbidden", "403"}
	if diff := cmp.Diff(want, strings.Fields(lines[1])[:8]); diff != "" {
		t.Error(diff)
	}
}

func TestShowCountsWhatIsNoRecord(t *testing.T) {
	t.Parallel()
	text := "hello\n" + strings.Repeat("x", 100_000) + "\n{\"seq\":1}\ntorn"
	var out bytes.Buffer
	skipped, err := audit.Show([]audit.Source{source("x", []byte(text))}, audit.Filter{},
		&audit.Printer{W: &out, JSON: true})
	if err != nil || skipped != 4 || out.Len() != 0 {
		t.Errorf("%d skipped, %v, %q", skipped, err, out.String())
	}
}

func TestTargetText(t *testing.T) {
	t.Parallel()
	for want, target := range map[string]*audit.Target{
		"-": nil, "acme/site#3": {Owner: "acme", Repo: "site", Index: 3}, "acme/site id 9": {Owner: "acme", Repo: "site", ID: 9},
		"acme": {Org: "acme"}, "bob": {User: "bob"}, "acme/site bob": {Owner: "acme", Repo: "site", User: "bob"},
	} {
		if got := target.String(); got != want {
			t.Errorf("%+v is %q, want %q", target, got, want)
		}
	}
}

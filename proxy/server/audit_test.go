package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy/audit"
	"aegis/proxy/server"

	"github.com/rs/zerolog"
)

// auditLine is what these tests read of a record.
type auditLine struct {
	Event   string
	Started uint64
	Seq     uint64
	Call    *struct{ Tool string }
	Result  *struct {
		Outcome string
		Policy  string
		Object  *struct {
			Kind   string
			Number int64
		}
	}
	Detail *struct{ Reason string }
}

// shownAudit returns the records of an event, as "aegis audit show --json" prints them.
func shownAudit(t testing.TB, dir, event string) io.Reader {
	t.Helper()
	at, err := audit.Locate([]string{filepath.Join(dir, "audit")}, false)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := audit.Show(at.Sources, audit.Filter{Event: event}, &audit.Printer{W: &out, JSON: true}); err != nil {
		t.Fatal(err)
	}
	return &out
}

func auditLines(t *testing.T, dir, event string) []auditLine {
	t.Helper()
	var list []auditLine
	for dec := json.NewDecoder(shownAudit(t, dir, event)); dec.More(); {
		var l auditLine
		if err := dec.Decode(&l); err != nil {
			t.Fatal(err)
		}
		list = append(list, l)
	}
	return list
}

func ready(t *testing.T, base string) (int, string) {
	t.Helper()
	res, err := direct.Get(base + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var b bytes.Buffer
	_, _ = b.ReadFrom(res.Body)
	return res.StatusCode, b.String()
}

func TestAuditEndToEnd(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, fmt.Sprintf("data_dir: %q\ntools: {mode: search}\n", dir))
	s := r.connect(aliceToken, "2025-11-25")
	// The tool that really runs is recorded, not the one that carries it.
	if a := r.call(s, "gitea_call_tool", map[string]any{"name": "gitea_issue_create", "arguments": map[string]any{"owner": "acme", "repo": "issues-lab", "title": "t"}}); a.Status != 201 {
		t.Fatalf("%+v", a)
	}
	var end []auditLine
	eventually(t, func() error { // the record of the end comes behind
		if end = auditLines(t, dir, "tool_invocation"); len(end) == 0 {
			return errors.New("there is no record of the end")
		}
		return nil
	})
	start := auditLines(t, dir, "tool_call_started")
	if len(start) != 1 || len(end) != 1 || end[0].Started != start[0].Seq || start[0].Call.Tool != "gitea_issue_create" {
		t.Fatalf("records: %+v %+v", start, end)
	}
	if o := end[0].Result.Object; o == nil || o.Kind != "issue" || o.Number == 0 {
		t.Errorf("object is %+v", o)
	}

	// A link in the log's place: refused, red, and back without help.
	path := filepath.Join(dir, "audit", "audit.jsonl")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/null", path); err != nil {
		t.Fatal(err)
	}
	a := r.call(s, "gitea_call_tool", map[string]any{"name": "gitea_user_get_me", "arguments": map[string]any{}})
	if a.Error.Kind != "audit_unavailable" || strings.Contains(a.Error.Message, dir) {
		t.Errorf("answer is %+v", a)
	}
	if code, body := ready(t, r.base); code != http.StatusServiceUnavailable || !strings.Contains(body, `"audit":"the audit log cannot be written`) || strings.Contains(body, dir) {
		t.Errorf("readyz is %d %s", code, body)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if code, body := ready(t, r.base); code != http.StatusOK {
			return fmt.Errorf("readyz stays red: %s", body)
		}
		return nil
	})
	if a := r.call(s, "gitea_call_tool", map[string]any{"name": "gitea_user_get_me", "arguments": map[string]any{}}); a.Status != 200 {
		t.Errorf("answer is %+v", a)
	}
	_ = r.stop()
	r.srv.Close()
	report, keys, err := audit.VerifyFiles([]string{filepath.Join(dir, "audit")}, audit.FilesOptions{})
	if err != nil || report.Problem != nil || keys == "" {
		t.Errorf("%+v %v", report, err)
	}
}

// TestAuditOfReloads: one log through all generations of a server, and a record
// of each change.
func TestAuditOfReloads(t *testing.T) {
	dir := t.TempDir()
	cfg := func() *config.Config {
		c := config.Default()
		c.DataDir, c.Listen = dir, "127.0.0.1:0"
		c.Gitea.URL = &config.URL{}
		if err := c.Gitea.URL.UnmarshalText([]byte("http://127.0.0.1:1")); err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, err := server.Build(cfg(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	live := server.NewLive(first)
	changed := cfg()
	changed.Gitea.MaxConnections = 7 // another client of Gitea
	changed.Audit.Path = filepath.Join(t.TempDir(), "elsewhere.jsonl")
	for range 3 {
		if err := live.Reload(changed, server.Plain(zerolog.Nop())); err != nil {
			t.Fatal(err)
		}
	}
	live.Failed(config.Problems{{What: "bad", Do: "mend it"}})
	live.Close()
	if n := len(auditLines(t, dir, "config_reloaded")); n != 3 {
		t.Errorf("%d reloads recorded", n)
	}
	if n := len(auditLines(t, dir, "config_refused")); n != 1 {
		t.Errorf("%d refused reloads recorded", n)
	}
	if n := len(auditLines(t, dir, "stop")); n != 1 {
		t.Errorf("%d stops recorded", n)
	}
	if _, err := os.Stat(changed.Audit.Path); err == nil {
		t.Error("a reload moved the log")
	}
}

func TestCheckingAConfigurationTouchesNoLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	c := config.Default()
	c.DataDir = dir
	c.Gitea.URL = &config.URL{}
	if err := c.Gitea.URL.UnmarshalText([]byte("http://127.0.0.1:1")); err != nil {
		t.Fatal(err)
	}
	s, err := server.Look(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := os.Stat(dir); err == nil {
		t.Error("building a server made its data folder")
	}
}

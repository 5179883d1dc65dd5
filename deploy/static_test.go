// Package deploy_test holds that what this folder ships is right. Here are the tests
// that need Go alone. Those with the build tag deploy run the real tools on it, and a
// real systemd: "make deploy-test".
package deploy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/telemetry"
)

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// exported returns the metrics that Aegis has, each with its labels.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	m := telemetry.NewMetrics(telemetry.Build{})
	h := m.Stage()(proxy.HandlerFunc(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		c.Stats.Attempts, c.Stats.MaskHits = 1, map[string]int{"rule": 1}
		return &proxy.Result{}, nil
	}))
	if _, err := h.Handle(t.Context(), &proxy.Call{Tool: &proxy.Tool{}}); err != nil {
		t.Fatal(err)
	}
	m.Refused("address")
	m.Show(telemetry.State{
		Connections:  func() int { return 1 },
		Certificates: func() map[string]telemetry.Certificate { return map[string]telemetry.Certificate{"h": {}} },
		Reload:       func() telemetry.Reload { return telemetry.Reload{} },
		Audit:        func() (int, time.Duration) { return 0, 0 },
	})
	found := map[string][]string{}
	for _, line := range strings.Split(scrape(t, m), "\n") {
		if match := sample.FindStringSubmatch(line); match != nil {
			found[match[1]] = nil
			for _, label := range labelName.FindAllStringSubmatch(match[2], -1) {
				found[match[1]] = append(found[match[1]], label[1])
			}
		}
	}
	return found
}

var (
	sample    = regexp.MustCompile(`^([a-z_]+)(\{[^}]*\})? `)
	labelName = regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"`)
	metric    = regexp.MustCompile(`\b((?:aegis|go|process)_[a-z_]+)\b(\{[^}]*\})?`)
	grouping  = regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)
)

func scrape(t *testing.T, m *telemetry.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatal(w.Code)
	}
	return w.Body.String()
}

// expressions returns all PromQL of a YAML or JSON document.
func expressions(t *testing.T, text string) (list []string) {
	t.Helper()
	var doc any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if s, ok := v[key].(string); ok && (key == "expr" || key == "definition") {
					list = append(list, s)
				}
				visit(v[key])
			}
		case []any:
			for _, x := range v {
				visit(x)
			}
		}
	}
	visit(doc)
	return list
}

// TestMetricsExist: every metric that the alerts and the dashboard name is one that
// Aegis has, with the labels that they select and group by.
func TestMetricsExist(t *testing.T) {
	have := exported(t)
	always := []string{"instance", "job", "le"} // the first two are Prometheus's own
	for _, file := range []string{"monitoring/alerts.yaml", "monitoring/dashboard.json"} {
		named := 0
		for _, expr := range expressions(t, read(t, file)) {
			labels := slices.Clone(always)
			for _, m := range metric.FindAllStringSubmatch(expr, -1) {
				named++
				own, ok := have[m[1]]
				if !ok {
					t.Errorf("%s: there is no metric %s: %s", file, m[1], expr)
				}
				labels = append(labels, own...)
				for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
					if !slices.Contains(own, l[1]) && !slices.Contains(always, l[1]) {
						t.Errorf("%s: %s has no label %s: %s", file, m[1], l[1], expr)
					}
				}
			}
			for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
				for l := range strings.SplitSeq(g[1], ",") {
					if l = strings.TrimSpace(l); !slices.Contains(labels, l) {
						t.Errorf("%s: nothing has the label %s: %s", file, l, expr)
					}
				}
			}
		}
		if named < 10 {
			t.Errorf("%s: %d metrics; has its form changed?", file, named)
		}
	}
}

// TestKindsExist: the outcomes that the alerts select are ones that calls have.
func TestKindsExist(t *testing.T) {
	kinds := read(t, "../proxy/error.go")
	selected := regexp.MustCompile(`kind=~?"([^"]+)"`).FindAllStringSubmatch(read(t, "monitoring/alerts.yaml"), -1)
	if len(selected) == 0 {
		t.Fatal("no alert selects a kind; has the form changed?")
	}
	for _, m := range selected {
		for kind := range strings.SplitSeq(m[1], "|") {
			if !strings.Contains(kinds, `Kind = "`+kind+`"`) {
				t.Errorf("no call ends with kind %s", kind)
			}
		}
	}
}

// TestDashboardIsWhole: panels have their own numbers, do not overlap, and use no
// variable that is not declared.
func TestDashboardIsWhole(t *testing.T) {
	var d struct {
		UID    string
		Panels []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ X, Y, W, H int } `json:"gridPos"`
			Targets []json.RawMessage
		}
		Templating struct{ List []struct{ Name string } }
	}
	text := read(t, "monitoring/dashboard.json")
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("panel %d is there twice", p.ID)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q asks nothing", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, ok := cells[[2]int{x, y}]; ok || x >= 24 {
					t.Fatalf("panel %q lies on %q or outside", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
	}
	declared := []string{"__rate_interval"}
	for _, v := range d.Templating.List {
		declared = append(declared, v.Name)
	}
	for _, m := range regexp.MustCompile(`\$\{?([a-z_]+)`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(declared, m[1]) && m[1] != "__all" {
			t.Errorf("the variable %s is not declared", m[1])
		}
	}
}

// TestConfigurationsLoad: every aegis.yaml that is shipped here is one that Aegis
// takes, once the places for names are filled in.
func TestConfigurationsLoad(t *testing.T) {
	env := config.Env{
		Lookup: func(string) (string, bool) { return "0123456789abcdef0123456789abcdef", true },
		ReadFile: func(path string, _ int64) ([]byte, fs.FileMode, error) {
			if !strings.HasPrefix(path, "/run/secrets/aegis/") && !strings.HasPrefix(path, "/run/credentials/aegis.service/aegis_") {
				return nil, 0, errors.New("a secret that nothing here provides")
			}
			return []byte(strings.Repeat(filepath.Base(path), 8)), 0o400, nil
		},
	}
	fill := strings.NewReplacer("@HOST@", "aegis.example.org", "@CLIENT_ID@", "0f8c6d5e", "@GITEA_URL@", "https://git.example.org")
	for _, file := range []string{"package/default.yaml", "compose/aegis.token.yaml", "compose/aegis.tls.yaml", "compose/aegis.proxy.yaml"} {
		cfg, err := config.Parse(file, []byte(fill.Replace(read(t, file))), env)
		if err != nil {
			t.Errorf("%s:\n%v", file, err)
			continue
		}
		if cfg.DataDir != "/var/lib/aegis" {
			t.Errorf("%s: data_dir is %s, which no unit and no volume keeps", file, cfg.DataDir)
		}
	}
}

// TestBuildFlagsAgree: the image is built as the release is, but for the demo.
func TestBuildFlagsAgree(t *testing.T) {
	release, image := read(t, "release/build.go"), read(t, "../Dockerfile")
	for _, flag := range []string{"-trimpath", "-buildvcs=false", "-s -w -buildid= -X main.version=", "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOTOOLCHAIN=local"} {
		if !strings.Contains(release, flag) || !strings.Contains(image, flag) {
			t.Errorf("%s is not in both the Dockerfile and deploy/release", flag)
		}
	}
}

// TestImageIsBare: what the Dockerfile promises.
func TestImageIsBare(t *testing.T) {
	_, last, ok := strings.Cut(read(t, "../Dockerfile"), "\nFROM scratch\n")
	if !ok {
		t.Fatal("the image is not made from scratch")
	}
	for _, want := range []string{"USER 65532:65532", "HEALTHCHECK", `"health"`, "org.opencontainers.image.version=", "org.opencontainers.image.licenses="} {
		if !strings.Contains(last, want) {
			t.Errorf("the image has no %s", want)
		}
	}
	if strings.Contains(last, "RUN ") {
		t.Error("there is nothing in the image to run commands with")
	}
}

// TestUnitsAgree: unit, package, image and chart name the same paths.
func TestUnitsAgree(t *testing.T) {
	unit := read(t, "systemd/aegis.service")
	for _, want := range []string{"Type=notify", "WatchdogSec=", "LoadCredential=aegis:/etc/aegis/credentials", "ExecStart=/usr/bin/aegis serve -c /etc/aegis/aegis.yaml", "StateDirectory=aegis", "HUP $MAINPID"} {
		if !strings.Contains(unit, want) {
			t.Errorf("aegis.service has no %s", want)
		}
	}
	if strings.Contains(unit, "RestartPreventExitStatus") {
		t.Error("a crash of Go ends with the same status as a wrong configuration, so no status may keep systemd from a restart")
	}
	for _, s := range []struct{ file, name string }{{"systemd/aegis.socket", "aegis"}, {"systemd/aegis-http.socket", "http"}} {
		if !strings.Contains(read(t, s.file), "FileDescriptorName="+s.name+"\n") {
			t.Errorf("%s does not name its socket %s, as cmd/aegis expects", s.file, s.name)
		}
	}
}

// TestChartHasTheSameMonitoring: Helm reads files of the chart's own folder only.
func TestChartHasTheSameMonitoring(t *testing.T) {
	for _, name := range []string{"alerts.yaml", "dashboard.json"} {
		if read(t, "monitoring/"+name) != read(t, "helm/aegis/files/"+name) {
			t.Errorf("cp deploy/monitoring/%[1]s deploy/helm/aegis/files/%[1]s", name)
		}
	}
}

// TestPackageFilesExist: every file that nfpm.yaml names from this tree is there.
func TestPackageFilesExist(t *testing.T) {
	var p struct {
		Contents []struct{ Src, Dst, Type string }
		Scripts  map[string]string
	}
	if err := yaml.Unmarshal([]byte(read(t, "package/nfpm.yaml")), &p); err != nil {
		t.Fatal(err)
	}
	names := slices.Collect(maps.Values(p.Scripts))
	for _, c := range p.Contents {
		if c.Src != "" && !strings.HasPrefix(c.Src, "${DIST}") {
			names = append(names, c.Src)
		}
		if strings.HasPrefix(c.Dst, "/etc/") && c.Type != "config|noreplace" && c.Type != "dir" {
			t.Errorf("%s would be overwritten by an upgrade", c.Dst)
		}
	}
	if len(names) < 8 {
		t.Fatalf("%d names; has the form changed?", len(names))
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(name))); err != nil {
			t.Error(err)
		}
	}
}

// TestYAMLIsYAML: what is no template parses, with each key once.
func TestYAMLIsYAML(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" || strings.Contains(filepath.ToSlash(path), "/templates/") {
			return err
		}
		dec := yaml.NewDecoder(bytes.NewReader([]byte(read(t, path))))
		for {
			var doc map[string]any
			if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				t.Errorf("%s: %v", path, err)
				return nil
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

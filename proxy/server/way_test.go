package server_test

import (
	"flag"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy/server"
)

var update = flag.Bool("update", false, "write what these tests compare with")

// TestWayIsDocumented holds the picture of the way of a call in docs/architecture.md to the
// handlers and stages that there are. With -update it writes their names; what a new one
// does is then to be written behind its name by hand.
func TestWayIsDocumented(t *testing.T) {
	const file, begin, end = "../../docs/architecture.md", "```\nclient  POST /mcp\n", "gitea  "
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	picture, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has lost its picture of the way of a call", file)
	}
	cfg := config.Default()
	cfg.Gitea.URL = &config.URL{URL: url.URL{Scheme: "http", Host: "gitea.example"}}
	s, err := server.Look(cfg)
	if err != nil {
		t.Fatal(err)
	}
	handlers, stages := server.Way(s)
	if len(handlers) > 8 || len(stages) > 18 { // four of the stages are for what is to come
		t.Errorf("%d handlers and %d stages; merge some", len(handlers), len(stages))
	}
	was, calls, _ := strings.Cut(picture, "call\n")
	want := drawn(t, handlers, was) + "call\n" + drawn(t, stages, calls)
	switch {
	case want == picture:
	case !*update:
		t.Errorf("%s shows another way of a call; run make generate. It is:\n%s", file, want)
	default:
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// drawn returns the lines of these names, with what the picture says of each.
func drawn(t *testing.T, names []string, picture string) string {
	t.Helper()
	lines := slices.Collect(strings.Lines(picture))
	var b strings.Builder
	for _, name := range names {
		line := "  " + name + "\n"
		for _, l := range lines {
			if strings.HasPrefix(l, "  "+name+" ") {
				line = l
			}
		}
		if len(strings.Fields(line)) < 3 {
			t.Errorf("docs/architecture.md does not say what %q does", name)
		}
		b.WriteString(line)
	}
	return b.String()
}

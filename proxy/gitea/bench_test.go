package gitea_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/gitea"
)

func BenchmarkHandle(b *testing.B) {
	tools := builtin(b)
	for _, size := range []int{4 << 10, 120 << 10} {
		row := `{"id":1,"title":"` + strings.Repeat("x", 1000) + `","labels":[{"name":"kind/bug"}]}`
		body := []byte("[" + strings.TrimSuffix(strings.Repeat(row+",", size/len(row)), ",") + "]")
		u := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json;charset=utf-8")
			w.Header().Set("X-Total-Count", "30")
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = w.Write(body)
		})
		up := serveQuiet(b, u)
		c := client(b, up, func(cfg *config.Gitea, _ *gitea.Limits) { cfg.MaxConnections = 64 })
		k := call(tools["issueListIssues"], proxy.Arguments{"owner": "acme", "repo": "lab", "limit": json.Number("30")})
		b.Run(fmt.Sprintf("%dkB", size>>10), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				must(b, c, k)
			}
		})
	}
}

func BenchmarkPrepare(b *testing.B) {
	tools := builtin(b)
	c := client(b, "http://127.0.0.1:1")
	for name, k := range map[string]*proxy.Call{
		"list":   call(tools["issueListIssues"], proxy.Arguments{"owner": "acme", "repo": "lab", "state": "all", "page": json.Number("2")}),
		"file":   call(tools["repoGetContents"], proxy.Arguments{"owner": "acme", "repo": "lab", "filepath": "docs/a b#1?.md", "ref": "main"}),
		"create": call(tools["issueCreateIssue"], proxy.Arguments{"owner": "acme", "repo": "lab", "title": "t", "body": "text"}),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, _, _, err := c.Prepare(k); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

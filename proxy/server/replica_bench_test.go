package server_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// BenchmarkReplicas is the rate of calls through one replica and through two, each
// on one core: with what each kind of caller asks of the store. It tells of scaling
// only where cores are left for the client, Redis and the double.
func BenchmarkReplicas(b *testing.B) {
	const open = "limits: {address: {rate: off}, identity: {rate: 1000000/s, burst: 1000000}, concurrency: {identity: 0, total: 0}, shared: SHARED}\naudit: {path: \"off\"}\nlog: {level: error}\n"
	for _, c := range []struct {
		name, shared string
		oauth        bool
	}{{"static, no store", "false", false}, {"static, shared limits", "true", false}, {"oauth, shared limits", "true", true}} {
		for _, n := range []int{1, 2} {
			b.Run(c.name+"/"+string(rune('0'+n)), func(b *testing.B) {
				f := newFleet(b, fleetOptions{n: n, top: strings.Replace(open, "SHARED", c.shared, 1), env: []string{"GOMAXPROCS=1"}})
				token := botToken
				if c.oauth {
					token = f.newApp().connect("alice").field("access_token")
				}
				var next atomic.Int64
				b.SetParallelism(8)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					client := &http.Client{Transport: &http.Transport{}}
					defer client.CloseIdleConnections()
					for pb.Next() {
						f.callOnce(client, f.replicas[int(next.Add(1))%n].addr, token)
					}
				})
			})
		}
	}
}

// callOnce calls a replica without the balancer.
func (f *fleet) callOnce(client *http.Client, addr, token string) {
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"gitea_user_get_me","arguments":{}}}`
	q, err := http.NewRequest(http.MethodPost, "http://"+addr+"/mcp", strings.NewReader(body))
	if err != nil {
		f.t.Error(err)
		return
	}
	q.Host = strings.TrimPrefix(f.url, "http://")
	q.Header.Set("Authorization", "Bearer "+token)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	res, err := client.Do(q)
	if err != nil {
		f.t.Error(err)
		return
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(text), `\"status\":200`) {
		f.t.Errorf("%d %.300s, %v", res.StatusCode, text, err)
	}
}

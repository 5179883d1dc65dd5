//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestKilledUnderLoad kills the real program at random points while it answers
// calls. Whenever that happens, the log verifies after the next start, and each
// call that was answered has its two records.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	kills := 6
	if whole() {
		kills = 200
	}
	v := newVictim(t)
	for i := range kills {
		v.life(i%10 == 2)
		if code, out := v.audit("verify"); code != 0 && !strings.Contains(out, "in the middle of record") && !strings.Contains(out, "in the middle of a rotation") {
			t.Fatalf("after kill %d: %s", i+1, out)
		}
	}
	// One more start mends what the last kill left, and ends well.
	p := v.start()
	v.waitReady()
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatalf("the last run: %v\n%s", err, v.stderr)
	}
	code, out := v.audit("verify")
	if code != 0 || !strings.Contains(out, "ok: ") {
		t.Fatalf("exit %d: %s", code, out)
	}
	v.check()
	t.Logf("%d kills, %d answered calls\n%s", kills, len(v.answered), out)
}

// victim is a log on disk and the program that writes it, life after life.
type victim struct {
	t        *testing.T
	dir      string
	program  string
	addr     string
	stderr   *syncBuffer
	mu       sync.Mutex
	answered []string // request ids
}

const victimToken = "a-token-for-the-victim"

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{t: t, dir: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Under this name the test binary is the program; see TestMain.
	v.program = filepath.Join(v.dir, "aegis")
	if err := os.Symlink(self, v.program); err != nil {
		t.Fatal(err)
	}
	v.addr = unusedAddr(t)
	text := fmt.Sprintf(`
listen: %s
data_dir: data
gitea: {url: "http://127.0.0.1:1"}
auth: {tokens: [{name: victim, token: %s, gitea_token: 0123456789abcdef0123456789abcdef01234567}]}
audit: {rotate_size: 64KiB, checkpoint_records: 50, checkpoint_interval: 1s}
limits: {address: {rate: off}, identity: {rate: off}}
`, v.addr, victimToken)
	if err := os.WriteFile(v.file(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *victim) file() string { return filepath.Join(v.dir, "aegis.yaml") }

func (v *victim) start() *exec.Cmd {
	v.t.Helper()
	p := exec.Command(v.program, "demo", "-c", v.file())
	v.stderr = &syncBuffer{}
	p.Stderr = v.stderr
	if err := p.Start(); err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

func (v *victim) waitReady() {
	v.t.Helper()
	if !eventually(func() bool {
		res, err := direct.Get("http://" + v.addr + "/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	}) {
		v.t.Fatalf("the program does not get ready:\n%s", v.stderr)
	}
}

// calls is how many calls were answered.
func (v *victim) calls() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.answered)
}

// life runs the program under load and kills it, early while it may still be
// starting.
func (v *victim) life(early bool) {
	v.t.Helper()
	p := v.start()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !early {
		v.waitReady()
	}
	enough := v.calls() + 1 + rand.IntN(100)
	var load sync.WaitGroup
	for range 8 {
		load.Go(func() { v.load(ctx) })
	}
	if early {
		time.Sleep(rand.N(400 * time.Millisecond)) // any point is a good one
	} else if !eventually(func() bool { return v.calls() >= enough }) {
		v.t.Errorf("calls are not answered:\n%s", v.stderr)
	}
	if err := p.Process.Kill(); err != nil {
		v.t.Fatal(err)
	}
	_ = p.Wait() // it was killed
	cancel()
	load.Wait()
}

// load calls until the program is gone, and notes what was answered.
func (v *victim) load(ctx context.Context) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	bodies := []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"gitea_issue_list","arguments":{"owner":"acme","repo":"garden","limit":1}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"gitea_issue_create","arguments":{"owner":"acme","repo":"garden","title":"under load"}}}`,
	}
	for i := 0; ctx.Err() == nil; i++ {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+v.addr+"/mcp", strings.NewReader(bodies[i%2]))
		if err != nil {
			return
		}
		req.Header.Set("Authorization", "Bearer "+victimToken)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := client.Do(req)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err == nil && res.StatusCode == http.StatusOK && bytes.Contains(body, []byte(`"result"`)) {
			v.mu.Lock()
			v.answered = append(v.answered, res.Header.Get("X-Request-Id"))
			v.mu.Unlock()
		}
	}
}

// audit runs a sub-command on the log.
func (v *victim) audit(args ...string) (int, string) {
	var out strings.Builder
	args = append([]string{"audit"}, args...)
	code := run(context.Background(), append(args, "-c", v.file()), &out, &out)
	return code, out.String()
}

// check holds that every answered call has its two records.
func (v *victim) check() {
	v.t.Helper()
	code, out := v.audit("show", "--json")
	if code != 0 {
		v.t.Fatalf("exit %d: %.500s", code, out)
	}
	started, ended := map[string]int{}, map[string]int{}
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r struct {
			Event     string
			RequestID string `json:"request_id"`
			Result    struct{ Outcome string }
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			v.t.Fatal(err)
		}
		switch r.Event {
		case "tool_call_started":
			started[r.RequestID]++
		case "tool_invocation":
			ended[r.RequestID]++
		}
	}
	if len(v.answered) == 0 {
		v.t.Error("no call was answered")
	}
	for _, id := range v.answered {
		if id == "" || started[id] != 1 || ended[id] != 1 {
			v.t.Errorf("the answered call %s has %d and %d records", id, started[id], ended[id])
		}
	}
	for id, n := range ended {
		if n > 1 {
			v.t.Errorf("the call %s has %d results", id, n)
		}
	}
}

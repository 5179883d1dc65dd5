package docs_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aegis/proxy/gitea/demo"
)

// direct shares no connection with another request: httptest closes the idle ones of
// http.DefaultTransport whenever a test's server is closed, and a test beside it fails.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// elsewhere are pages whose commands are not run here, and why.
var elsewhere = map[string]string{
	"audit.md":      "proxy/audit runs them on a real log",
	"install.md":    "packages, containers and systemd need root; deploy has tests of its own for them",
	"kubernetes.md": "needs a cluster; deploy renders and checks the chart",
	"upgrade.md":    "needs root and an installed package; deploy upgrades one in a folder",
}

// patience bounds the commands of one page, which take some seconds.
const patience = 5 * time.Minute

// block is a piece of shell in a page.
type block struct {
	line       int
	text       string
	background bool   // it serves until the page ends
	skipped    string // why it is not run
}

// mark is the comment before a block that says how it is run:
//
//	<!-- run: background -->   it serves until the end of the page
//	<!-- run: not, WHY -->     it is not run
var mark = regexp.MustCompile(`^<!-- run: (background|not, .+) -->$`)

func blocks(t *testing.T, page string) []block {
	t.Helper()
	var list []block
	lines := strings.Split(read(t, page), "\n")
	for i := 0; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) != "```sh" {
			continue
		}
		b := block{line: i + 1}
		if i > 0 {
			if m := mark.FindStringSubmatch(strings.TrimSpace(lines[i-1])); m != nil {
				b.background = m[1] == "background"
				b.skipped, _ = strings.CutPrefix(m[1], "not, ")
				if b.background {
					b.skipped = ""
				}
			}
		}
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
			b.text += lines[i] + "\n"
		}
		list = append(list, b)
	}
	return list
}

// TestCommands runs the commands of every page, in their order, in a folder of
// their own, with the real program and a demo Gitea.
func TestCommands(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a Unix shell")
	}
	t.Parallel()
	bin := program(t)
	ran := 0
	for _, page := range pages(t) {
		list := blocks(t, page)
		if len(list) == 0 || elsewhere[page] != "" {
			continue
		}
		ran++
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			runPage(t, page, list, bin)
		})
	}
	if ran < 3 {
		t.Errorf("commands of %d pages were run; has their form changed?", ran)
	}
	for page := range elsewhere {
		if _, err := os.Stat(page); err == nil && len(blocks(t, page)) == 0 {
			t.Errorf("%s has no commands; take it from the list", page)
		}
	}
}

// built is the real program, for all tests.
var built struct {
	sync.Mutex
	bin string // its folder; "" before it is there
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.bin != "" {
		_ = os.RemoveAll(built.bin)
	}
	os.Exit(code)
}

// program makes the real program and returns its folder. "go run" keeps what it
// linked for the next time, which "go build" does not.
func program(t *testing.T) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.bin != "" {
		return built.bin
	}
	bin, err := os.MkdirTemp("", "aegis-docs-")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "run", "-exec", "cp", "../cmd/aegis", filepath.Join(bin, "aegis")).CombinedOutput(); err != nil {
		_ = os.RemoveAll(bin)
		t.Fatalf("%v\n%s", err, out)
	}
	built.bin = bin
	return bin
}

var (
	// spelled is a command line of ours in running text or at the start of a line.
	spelled = regexp.MustCompile("(?m)(?:`|^ *(?:sudo )?(?:bin/)?)aegis ([a-z][^`\n]*)")
	// ending is where a command line ends, or stops being one.
	ending = regexp.MustCompile(`\s#.*|\s&&.*|\s\|.*|\\.*|\s>.*|…`)
)

// commandLines returns the command lines of a page, without their first word.
func commandLines(text string) []string {
	var list []string
	for _, m := range spelled.FindAllStringSubmatch(text, -1) {
		line := strings.NewReplacer("[", " ", "]", " ", "\"", "").Replace(ending.ReplaceAllString(m[1], ""))
		if line = strings.Join(strings.Fields(line), " "); !slices.Contains(list, line) {
			list = append(list, line)
		}
	}
	return list
}

// TestCommandLines: every command line that a page names, in whatever place, has
// commands and flags that exist. --help makes the program look at them, and do
// nothing.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	bin, seen := program(t), map[string]bool{}
	for _, page := range pages(t) {
		for _, line := range commandLines(read(t, page)) {
			if seen[line] {
				continue
			}
			seen[line] = true
			cmd := exec.Command(filepath.Join(bin, "aegis"), append(strings.Fields(line), "--help")...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: aegis %s: %v: %s", page, line, err, out)
			}
		}
	}
	if len(seen) < 30 {
		t.Errorf("only %d command lines were found; has their form changed?", len(seen))
	}
	if out, err := exec.Command(filepath.Join(bin, "aegis"), "check", "--prnt", "--help").CombinedOutput(); err == nil {
		t.Errorf("a flag that does not exist passes: %s", out)
	}
}

// runPage runs the blocks of one page. The addresses of the documentation are
// replaced by those of the test.
func runPage(t *testing.T, page string, list []block, bin string) {
	gitea, err := demo.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer gitea.Close()
	tok, err := gitea.Token("")
	if err != nil {
		t.Fatal(err)
	}
	addr, dir := freeAddr(t), t.TempDir()
	adapt := strings.NewReplacer("http://127.0.0.1:3000", gitea.URL().String(), "127.0.0.1:8080", addr, "bin/aegis", "aegis")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, b := range list {
		if b.skipped != "" {
			continue
		}
		cmd := exec.CommandContext(ctx, "sh", "-eu", "-c", adapt.Replace(b.text))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir, "GITEA_TOKEN="+tok.GiteaToken.Reveal(), "GITEA_ADMIN_TOKEN="+tok.GiteaToken.Reveal())
		if b.background {
			defer serveBlock(t, cmd, addr, fmt.Sprintf("%s:%d", page, b.line))()
			continue
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s:%d: %v\n%s\n%s", page, b.line, err, b.text, out)
		}
	}
}

// serveBlock starts a block that serves, waits until it does, and returns what
// ends it. Its last command takes the shell's place.
func serveBlock(t *testing.T, cmd *exec.Cmd, addr, where string) (stop func()) {
	t.Helper()
	script := strings.TrimSpace(cmd.Args[len(cmd.Args)-1])
	at := strings.LastIndex(script, "\n") + 1
	cmd.Args[len(cmd.Args)-1] = script[:at] + "exec " + script[at:]
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	end := func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended by itself
		<-done
	}
	for until := time.Now().Add(patience); time.Now().Before(until); {
		res, err := direct.Get("http://" + addr + "/readyz")
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return end
			}
		}
		select {
		case <-done:
			t.Fatalf("%s ended: %s", where, out.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	end()
	t.Fatalf("%s does not serve: %s", where, out.String())
	return nil
}

// ports counts the ports that freeAddr tried.
var ports atomic.Int64

// freeAddr returns a loopback address that nothing listens on, another one each time.
// Its port is below those that systems give to connections and to listeners that name
// none, and apart from those that the tests of other packages use, so that nobody
// takes it before the page does.
func freeAddr(t *testing.T) string {
	t.Helper()
	var last error
	for range 100 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 29_000+(int64(os.Getpid())*101+ports.Add(1))%3_000))
		if err == nil {
			defer ln.Close()
			return ln.Addr().String()
		}
		last = err
	}
	t.Fatal(last)
	return ""
}

package browser_test

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// patience bounds one test, and the start of the browser. Waiting ends as soon as
// what is waited for is there; machines that build something else meanwhile are slow.
const patience = 3 * time.Minute

// ending is what is kept of the time that "go test" gives, for ending the browser:
// when that time is up, nothing is ended any more.
const ending = 30 * time.Second

// limit is how long a test may take.
func limit(t *testing.T) time.Duration {
	if end, ok := t.Deadline(); ok {
		return min(patience, time.Until(end)-ending)
	}
	return patience
}

// chromium is the browser that all tests share; each has a profile of its own in it.
// Ending it ends its whole tree of processes. A test that panics, or runs out of the
// time that "go test" gives, leaves no time for that: then the browser ends because
// its pipe to this process does.
type chromium struct {
	once  sync.Once
	ctx   context.Context
	close func()
	err   error
}

var shared = &chromium{close: func() {}}

func TestMain(m *testing.M) {
	code := m.Run()
	shared.close()
	os.Exit(code)
}

// find returns the program, "" when there is none.
func find() string {
	names := []string{"chromium", "chromium-headless-shell", "chromium-browser", "google-chrome", "google-chrome-stable"}
	if named := os.Getenv("AEGIS_TEST_CHROMIUM"); named != "" {
		names = []string{named}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// start starts the browser once.
func (c *chromium) start(path string) (context.Context, error) {
	c.once.Do(func() {
		spki := sha256.Sum256(certificate().RawSubjectPublicKeyInfo)
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.Flag("headless", "new"), chromedp.Flag("no-proxy-server", true), chromedp.Flag("disable-dev-shm-usage", true),
			// One certificate is trusted, the one that these tests made for themselves.
			chromedp.Flag("ignore-certificate-errors-spki-list", base64.StdEncoding.EncodeToString(spki[:])),
			chromedp.WindowSize(1000, 800),
		)
		if os.Geteuid() == 0 {
			options = append(options, chromedp.NoSandbox) // Chromium's sandbox refuses root
		}
		allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, cancel := chromedp.NewContext(allocator)
		late := time.AfterFunc(patience, cancel)
		c.ctx, c.err = ctx, chromedp.Do(ctx)
		late.Stop()
		c.close = func() { cancel(); stop() }
	})
	return c.ctx, c.err
}

// tab is one window with a profile of its own.
type tab struct {
	t   *testing.T
	ctx context.Context
	mu  sync.Mutex
	// went are the addresses that pages asked to go to, blocked what a content
	// security policy kept from happening.
	went, blocked []string
}

const remedy = "install Debian's package chromium-headless-shell or chromium, or name one with AEGIS_TEST_CHROMIUM"

func open(t *testing.T) *tab {
	t.Helper()
	path := find()
	if path == "" {
		if os.Getenv("AEGIS_TEST_TOOLS") == "must" {
			t.Fatal("no Chromium: " + remedy)
		}
		t.Skip("no Chromium here: " + remedy)
	}
	browser, err := shared.start(path)
	if err != nil {
		t.Fatalf("Chromium does not start: %v", err)
	}
	b := &tab{t: t}
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.hear))
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	b.ctx, cancel = context.WithTimeout(ctx, limit(t))
	t.Cleanup(cancel)
	send(b, log.Enable, cdp.Empty{})
	return b
}

// send sends a command of the protocol.
func send[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	r, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.t.Fatalf("%T: %v", params, err)
	}
	return r
}

// get runs an action that returns something.
func get[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, action)
	if err != nil {
		b.failed(err)
	}
	return v
}

func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *page.EventFrameRequestedNavigation:
		b.went = append(b.went, e.URL)
	case *log.EventEntryAdded:
		if strings.Contains(e.Entry.Text, "Content Security Policy") {
			b.blocked = append(b.blocked, e.Entry.Text)
		}
	}
}

// requested returns the addresses that pages asked for and begin with a prefix.
func (b *tab) requested(prefix string) (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range b.went {
		if strings.HasPrefix(u, prefix) {
			list = append(list, u)
		}
	}
	return list
}

// unblocked fails the test when a policy stopped anything.
func (b *tab) unblocked() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.blocked {
		b.t.Errorf("a policy was broken: %s", text)
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.failed(err)
	}
}

// failed ends the test with what is shown.
func (b *tab) failed(err error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), ending/2)
	defer cancel()
	at, _ := chromedp.Run(ctx, chromedp.Location()) // for the report alone
	text, _ := chromedp.Run(ctx, chromedp.Text(chromedp.CSS("body")))
	b.t.Fatalf("%v\nat %.300s:\n%.1500s", err, at, text)
}

// until looks until ok, while there is patience: of what it is for, the protocol has
// no event that could not have passed already.
func (b *tab) until(what string, ok func() bool) {
	b.t.Helper()
	for !ok() {
		if b.ctx.Err() != nil {
			b.t.Fatalf("not within its time: %s", what)
		}
		b.do(chromedp.Sleep(10 * time.Millisecond))
	}
}

// visit opens an address.
func (b *tab) visit(address string) { b.t.Helper(); b.do(chromedp.Navigate(address)) }

// shows waits until an element is there.
func (b *tab) shows(selector string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(chromedp.CSS(selector)))
}

// hides waits until an element is not to be seen.
func (b *tab) hides(selector string) {
	b.t.Helper()
	b.do(chromedp.WaitNotVisible(chromedp.CSS(selector)))
}

func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(chromedp.CSS(selector)), chromedp.Click(chromedp.CSS(selector)))
}

func (b *tab) text() string { b.t.Helper(); return get(b, chromedp.Text(chromedp.CSS("body"))) }

func (b *tab) at() string { b.t.Helper(); return get(b, chromedp.Location()) }

// says waits until the page's heading is as given.
func (b *tab) says(heading string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(fmt.Sprintf(`//h1[contains(normalize-space(.), %q)]`, heading)))
}

// looks are the ways to look at a page.
var looks = []struct {
	name          string
	width, height int64
	scheme        string
}{
	{"light", 1000, 760, "light"},
	{"dark", 1000, 760, "dark"},
	{"phone", 390, 844, "light"},
	{"phone-dark", 390, 844, "dark"},
}

// picture looks at the page in every way: nothing may overflow or be hard to read.
// It keeps pictures where AEGIS_TEST_SCREENSHOTS says.
func (b *tab) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("AEGIS_TEST_SCREENSHOTS")
	size := b.size()
	for _, l := range looks {
		send(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.width < 500})
		send(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		for _, f := range get(b, chromedp.Evaluate[[]string](inspect)) {
			b.t.Errorf("%s, %s: %s", name, l.name, f)
		}
		if dir == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name+"-"+l.name+".png"), get(b, chromedp.FullScreenshot(100)), 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	send(b, emulation.ClearDeviceMetricsOverride, cdp.Empty{})
	send(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
	// The answer to the command comes before the page has its size back, and a click
	// in between goes where the button was on the phone.
	b.until("the page has its size back", func() bool { return b.size() == size })
}

// size is the page's width and height in pixels of CSS.
func (b *tab) size() string {
	b.t.Helper()
	return get(b, chromedp.Evaluate[string](`innerWidth + "x" + innerHeight`))
}

// inspect finds what people would stumble over: sideways scrolling, text with too
// little contrast (WCAG 2.2, 1.4.3: 4.5, or 3 for large text), targets too small to
// hit (2.5.8: 24 pixels), controls without a name, and headings out of order.
const inspect = `(() => {
  const found = [], root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) found.push("scrolls sideways: " + root.scrollWidth + " > " + root.clientWidth);
  const parse = c => (c.match(/[\d.]+/g) || [0,0,0,0]).map(Number);
  const light = c => { const f = c.slice(0,3).map(v => { v /= 255; return v <= .04045 ? v/12.92 : Math.pow((v+.055)/1.055, 2.4) }); return .2126*f[0]+.7152*f[1]+.0722*f[2] };
  const back = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c } return [255,255,255] };
  for (const e of document.querySelectorAll("body *")) {
    const s = getComputedStyle(e);
    if (s.display === "none" || s.visibility === "hidden" || !e.getClientRects().length || e.closest(".unseen")) continue;
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    const size = parseFloat(s.fontSize), large = size >= 24 || size >= 18.66 && s.fontWeight >= 700;
    if (own) {
      const a = light(parse(s.color)), b = light(back(e)), ratio = (Math.max(a,b)+.05)/(Math.min(a,b)+.05);
      if (ratio < (large ? 3 : 4.5)) found.push("contrast " + ratio.toFixed(2) + ": " + e.textContent.trim().slice(0,40));
      if (size < 12) found.push("small text: " + e.textContent.trim().slice(0,40));
    }
    if (e.matches("button,select,a.button,summary")) {
      const r = e.getBoundingClientRect();
      if (r.height < 24 || r.width < 24) found.push("small target: " + e.textContent.trim().slice(0,40) + " " + r.width + "x" + r.height);
      if (!(e.textContent.trim() || e.getAttribute("aria-label"))) found.push("no name: " + e.outerHTML.slice(0,80));
      if (r.left < 0 || r.right > root.clientWidth + .5) found.push("outside the page: " + e.textContent.trim().slice(0,40));
    }
    if (e.matches("input:not([type=hidden])") && !e.labels.length) found.push("no label: " + e.outerHTML.slice(0,80));
  }
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  if (!document.title || !root.lang) found.push("no title or language");
  return found;
})()`

// pair makes the certificate that the browser trusts.
var pair = sync.OnceValue(newPair)

func certificate() *x509.Certificate { return pair().cert }

package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"aegis/proxy/kv"
	"aegis/proxy/oauth/client"
)

func TestDocumentsAreCached(t *testing.T) {
	t.Parallel()
	n, c := newInternet(t), newClock()
	n.set(url, page(document(url, "http://localhost/cb"), "Cache-Control", "max-age=1"))
	r := build(t, n.options(c))
	get := func() {
		t.Helper()
		if _, err := r.Client(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
	get()
	c.add(5*time.Minute - time.Second)
	get()
	if hits := n.hit(url); hits != 1 {
		t.Errorf("%d fetches within five minutes", hits)
	}
	c.add(time.Second)
	n.set(url, page(document(url, "http://localhost/new"), "Cache-Control", "max-age=999999"))
	get()
	c.add(24*time.Hour - time.Second)
	got, err := r.Client(t.Context(), url)
	if err != nil || n.hit(url) != 2 || !got.Redirect("http://localhost/new") {
		t.Errorf("%d fetches, %+v %v", n.hit(url), got, err)
	}
	c.add(time.Second)
	get()
	if hits := n.hit(url); hits != 3 {
		t.Errorf("%d fetches after a day", hits)
	}
}

func TestFailuresAreRemembered(t *testing.T) {
	t.Parallel()
	n, c := newInternet(t), newClock()
	r := build(t, n.options(c))
	for range 10 {
		if _, err := r.Client(t.Context(), url); kindOf(err) != client.Refused {
			t.Fatal(err)
		}
	}
	c.add(30*time.Second - 1)
	_, _ = r.Client(t.Context(), url)
	if hits := n.hit(url); hits != 1 {
		t.Errorf("%d fetches", hits)
	}
	n.set(url, page(document(url, "http://localhost/cb")))
	c.add(1)
	if _, err := r.Client(t.Context(), url); err != nil {
		t.Error(err)
	}
}

// TestOneFetchForAll: many ask at once, one fetch is made, and whoever asked
// first may go away.
func TestOneFetchForAll(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	started, release := make(chan struct{}), make(chan struct{})
	n.set(url, func(w http.ResponseWriter, r *http.Request) {
		close(started) // a second fetch would panic here
		<-release
		page(document(url, "http://localhost/cb"))(w, r)
	})
	r := build(t, n.options(newClock()))
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { _, err := r.Client(ctx, url); first <- err }()
	<-started
	cancel()
	wantError(t, <-first, client.Unavailable, url)
	var wg sync.WaitGroup
	errs := make([]error, 32)
	for i := range errs {
		wg.Go(func() { _, errs[i] = r.Client(t.Context(), url) })
	}
	close(release)
	wg.Wait()
	if err := errors.Join(errs...); err != nil || n.hit(url) != 1 {
		t.Errorf("%d fetches: %v", n.hit(url), err)
	}
}

// TestFloodOfDocuments: memory stays bounded, the store is not written, and
// fetches end at the limit, whatever strangers ask for.
func TestFloodOfDocuments(t *testing.T) {
	t.Parallel()
	n, c := newInternet(t), newClock()
	n.cut(true)
	o := n.options(c)
	spy := &spyWrites{Store: o.Store}
	o.Store = spy
	r := build(t, o)
	for i := range 2000 {
		_, _ = r.Client(t.Context(), fmt.Sprintf("https://d%d.example%d/c", i, i))
		c.add(time.Second)
	}
	documents, domains := client.Cached(r)
	if documents != client.MaxCached || domains != client.MaxDomains {
		t.Errorf("%d documents and %d domains in memory", documents, domains)
	}
	if spy.writes != 0 {
		t.Errorf("%d writes", spy.writes)
	}
	n.mu.Lock()
	before := len(n.lookups)
	n.mu.Unlock()
	for i := range 200 {
		_, err := r.Client(t.Context(), fmt.Sprintf("https://e%d.example%d/c", i, i))
		if kindOf(err) != client.Unavailable {
			t.Fatal(err)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if made := len(n.lookups) - before; made > 32 {
		t.Errorf("%d fetches at once", made)
	}
}

// spyWrites counts writes.
type spyWrites struct {
	kv.Store
	writes int
}

func (s *spyWrites) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	s.writes++
	return s.Store.Put(ctx, key, value, ttl)
}

// TestFetchLimits: one domain cannot use up what is there for all, and strangers
// cannot use up what approved clients need.
func TestFetchLimits(t *testing.T) {
	t.Parallel()
	n, c := newInternet(t), newClock()
	known := "https://claude.ai/c"
	n.set(known, page(document(known, "http://localhost/cb"), "Cache-Control", "max-age=600"))
	r := build(t, n.options(c))
	client1, err := r.Client(t.Context(), known)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Keep(t.Context(), client1); err != nil {
		t.Fatal(err)
	}
	c.add(11 * time.Minute)
	for i := range 40 {
		_, err := r.Client(t.Context(), fmt.Sprintf("https://sub%d.flood.example/c", i))
		want := client.Refused // there is no document
		if i >= 20 {
			want = client.Unavailable
		}
		if kindOf(err) != want {
			t.Fatalf("%d: %v", i, err)
		}
	}
	_, err = r.Client(t.Context(), "https://other.example2/c")
	wantError(t, err, client.Refused)
	for i := range 40 {
		_, _ = r.Client(t.Context(), fmt.Sprintf("https://x.flood%d/c", i))
	}
	late := "https://late.example3/c"
	n.set(late, page(document(late, "http://localhost/cb")))
	_, err = r.Client(t.Context(), late)
	wantError(t, err, client.Unavailable)
	if _, err := r.Client(t.Context(), known); err != nil || n.hit(known) != 2 {
		t.Errorf("the approved client is starved: %v, %d fetches", err, n.hit(known))
	}
	c.add(time.Second) // the limit itself is not remembered as a failure
	if _, err := r.Client(t.Context(), late); err != nil {
		t.Error(err)
	}
}

// TestOutageOfADocument: what was approved stays usable while the host is down;
// nothing new is approved on old knowledge.
func TestOutageOfADocument(t *testing.T) {
	t.Parallel()
	n, c := newInternet(t), newClock()
	n.set(url, page(document(url, "http://localhost/cb")))
	o := n.options(c)
	r := buildApproved(t, o)
	n.cut(true)
	again := build(t, o) // a restart, or another replica
	if _, err := again.Client(t.Context(), url); err != nil {
		t.Errorf("while fresh: %v", err)
	}
	c.add(2 * time.Hour)
	for _, r := range []*client.Resolver{r, again, build(t, o)} {
		_, err := r.Client(t.Context(), url)
		wantError(t, err, client.Unavailable, url)
		old, err := r.Returning(t.Context(), url)
		if err != nil || !old.Redirect("http://localhost:99/cb") || old.Host != "app.example" || !old.Verified || !old.LoopbackOnly || old.Name != "Some Client" {
			t.Errorf("%+v %v", old, err)
		}
	}
	c.add(40 * 24 * time.Hour)
	_, err := r.Returning(t.Context(), url)
	wantError(t, err, client.Unavailable, url)
}

func TestOutageOfADocumentNobodyApproved(t *testing.T) {
	t.Parallel()
	n, c := newInternet(t), newClock()
	n.set(url, page(document(url, "http://localhost/cb")))
	r := build(t, n.options(c))
	if _, err := r.Client(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	n.cut(true)
	c.add(2 * time.Hour)
	_, err := r.Returning(t.Context(), url)
	wantError(t, err, client.Unavailable, url)
}

// TestWithdrawnDocument: a document that is gone, or became another's, is no
// outage; and a later outage does not bring it back.
func TestWithdrawnDocument(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]http.HandlerFunc{
		"gone":    http.NotFound,
		"other":   page(document("https://app.example/other", "http://localhost/cb")),
		"invalid": page(document(url, "javascript:1")),
	} {
		n, c := newInternet(t), newClock()
		n.set(url, page(document(url, "http://localhost/cb")))
		o := n.options(c)
		r := build(t, o)
		got, err := r.Client(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Keep(t.Context(), got); err != nil {
			t.Fatal(err)
		}
		c.add(2 * time.Hour)
		n.set(url, now)
		stuck := o
		stuck.Store = undeletable{o.Store}
		if _, err := build(t, stuck).Returning(t.Context(), url); kindOf(err) != client.Refused {
			t.Errorf("%s, with a record that stays: %v", name, err)
		}
		if _, err := r.Returning(t.Context(), url); kindOf(err) != client.Refused {
			t.Errorf("%s: %v", name, err)
		}
		n.cut(true)
		c.add(time.Minute)
		if _, err := r.Returning(t.Context(), url); kindOf(err) != client.Unavailable {
			t.Errorf("%s, then down: %v", name, err)
		}
	}
}

// undeletable is a store whose Delete fails.
type undeletable struct{ kv.Store }

func (undeletable) Delete(context.Context, string) error { return kv.ErrClosed }

// TestKeptDocumentIsRenewed: an approved client's record follows its document.
func TestKeptDocumentIsRenewed(t *testing.T) {
	t.Parallel()
	n, c := newInternet(t), newClock()
	n.set(url, page(document(url, "http://localhost/old")))
	o := n.options(c)
	r := buildApproved(t, o)
	n.set(url, page(document(url, "http://localhost/new", cursor)))
	for range 3 { // 60 days in all, while one record lasts 30
		c.add(20 * 24 * time.Hour)
		if _, err := r.Returning(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
	n.cut(true)
	o.Config.PrivateRedirects = nil // the operator thought again
	c.add(2 * time.Hour)
	now, err := build(t, o).Returning(t.Context(), url)
	if err != nil || !now.Redirect("http://localhost:1/new") || now.Redirect("http://localhost/old") || now.Redirect(cursor) {
		t.Errorf("%+v %v", now, err)
	}
}

// TestStoreInTrouble: the store is a comfort here; without it documents work.
func TestStoreInTrouble(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	n.set(url, page(document(url, "http://localhost/cb")))
	for name, value := range map[string]string{
		"closed": "", "garbage": "{", "another": `{"url":"https://evil.example/c","name":"Evil","redirect_uris":["https://evil.example/cb"],"fresh":"2099-01-01T00:00:00Z"}`,
		"hostile": `{"url":"` + url + `","name":"Evil","redirect_uris":["javascript:1"],"fresh":"2099-01-01T00:00:00Z"}`,
	} {
		o := n.options(newClock())
		o.Store = fixedStore{value: value}
		got, err := build(t, o).Client(t.Context(), url)
		if err != nil || got.Name != "Some Client" {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

// fixedStore has one value under every key, or fails.
type fixedStore struct {
	kv.Store
	value string
}

func (s fixedStore) Get(context.Context, string) (kv.Entry, error) {
	if s.value == "" {
		return kv.Entry{}, kv.ErrClosed
	}
	return kv.Entry{Value: []byte(s.value), Version: 1}, nil
}

func (s fixedStore) Put(context.Context, string, []byte, time.Duration) error { return kv.ErrClosed }

func (s fixedStore) Delete(context.Context, string) error { return kv.ErrClosed }

func TestDomainOf(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{"a.b.example.com": "example.com", "example.com": "example.com", "com": "com", "": ""} {
		if got := client.DomainOf(host); got != want {
			t.Errorf("%q: %q", host, got)
		}
	}
}

// TestLookupGetsTheHost: nothing but the host of the URL is looked up.
func TestLookupGetsTheHost(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	o := n.options(newClock())
	var asked []string
	o.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		asked = append(asked, host)
		return nil, errors.New("none")
	}
	_, err := build(t, o).Client(t.Context(), "https://sub.app.example/a/b.json")
	wantError(t, err, client.Unavailable)
	if len(asked) != 1 || asked[0] != "sub.app.example" {
		t.Errorf("%q", asked)
	}
}

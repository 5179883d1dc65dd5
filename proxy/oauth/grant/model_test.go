package grant_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"aegis/proxy/kv"
	"aegis/proxy/kv/kvtest"
	"aegis/proxy/oauth/grant"
)

// The model says in plain terms what must become of codes and tokens; random
// histories compare it with the real thing, call by call.
type model struct {
	life     lifetimes
	codes    []*modelCode
	families []*modelFamily
	access   []*modelAccess
	refresh  []modelRefresh
}

type modelCode struct {
	code    string
	issued  time.Time
	used    time.Time // zero: not yet
	family  *modelFamily
	cleared bool
}

type modelFamily struct {
	id      string
	user    int64
	ended   bool
	created time.Time
	expires time.Time
	usedAt  []time.Time // of each refresh token but the current one
	current string
}

type modelAccess struct {
	token   string
	family  *modelFamily
	expires time.Time
}

type modelRefresh struct {
	token  string
	family *modelFamily
	index  int
}

func (f *modelFamily) alive(now time.Time) bool { return !f.ended && now.Before(f.expires) }

// extend moves the end of a family that is refreshed now.
func (m *model) extend(f *modelFamily, now time.Time) {
	f.expires = now.Add(m.life.Refresh)
	if end := f.created.Add(m.life.Max); m.life.Max > 0 && f.expires.After(end) {
		f.expires = end
	}
}

// got notes the tokens of an answer.
func (m *model) got(t *grant.Tokens, f *modelFamily, now time.Time) {
	m.access = append(m.access, &modelAccess{t.Access, f, now.Add(t.ExpiresIn)})
	if f.current != t.Refresh {
		f.current = t.Refresh
		m.refresh = append(m.refresh, modelRefresh{t.Refresh, f, len(f.usedAt)})
	}
}

// history is one random run.
type history struct {
	t   *testing.T
	w   *world
	m   *model
	rng *rand.Rand
	log []string
}

func (h *history) failf(format string, args ...any) {
	h.t.Helper()
	for _, line := range h.log {
		h.t.Log(line)
	}
	h.t.Fatalf(format, args...)
}

// valid compares an outcome with what the model says.
func (h *history) valid(want bool, err error) {
	h.t.Helper()
	if want && err != nil || !want && !errors.Is(err, grant.ErrInvalid) {
		h.failf("%s: %v; the model says %v", h.log[len(h.log)-1], err, want)
	}
}

func (h *history) note(format string, args ...any) {
	h.log = append(h.log, h.w.clock.Now().Format("02 15:04:05 ")+fmt.Sprintf(format, args...))
}

func (h *history) issue() {
	user := int64(1 + h.rng.IntN(2))
	h.note("code %d for %d", len(h.m.codes), user)
	c := aCode()
	c.UserID = user
	code, err := h.w.IssueCode(context.Background(), c)
	h.valid(true, err)
	h.m.codes = append(h.m.codes, &modelCode{code: code, issued: h.w.clock.Now(), family: &modelFamily{user: user}})
}

func (h *history) redeem() {
	i := h.pick(len(h.m.codes))
	if i < 0 {
		return
	}
	c, now := h.m.codes[i], h.w.clock.Now()
	h.note("redeem code %d", i)
	tokens, err := h.w.Redeem(context.Background(), c.code, aRedeem())
	h.valid(c.used.IsZero() && !c.cleared && now.Sub(c.issued) < time.Minute, err)
	switch {
	case err == nil:
		f := c.family
		c.used, f.created, f.id = now, now, tokens.Grant.ID
		h.m.extend(f, now)
		h.m.families = append(h.m.families, f)
		h.m.got(tokens, f, now)
	case !c.used.IsZero() && now.Sub(c.used) < 10*time.Minute:
		c.family.ended = true
	}
}

// pick prefers what is new, as clients do.
func (h *history) pick(n int) int {
	if n == 0 {
		return -1
	}
	if h.rng.IntN(3) > 0 {
		return n - 1 - h.rng.IntN(min(n, 3))
	}
	return h.rng.IntN(n)
}

func (h *history) refreshOne() {
	i := h.pick(len(h.m.refresh))
	if i < 0 {
		return
	}
	r, now := h.m.refresh[i], h.w.clock.Now()
	f := r.family
	h.note("refresh token %d of %.4s", r.index, f.id)
	alive, isCurrent := f.alive(now), r.index == len(f.usedAt)
	graced := !isCurrent && r.index >= len(f.usedAt)-16 && now.Sub(f.usedAt[r.index]) < h.m.life.Grace
	before := f.current
	tokens, err := h.w.refresh(r.token)
	h.valid(alive && (isCurrent || graced), err)
	switch {
	case err != nil:
		f.ended = f.ended || alive
		return
	case isCurrent:
		f.usedAt = append(f.usedAt, now)
		h.m.extend(f, now)
	case tokens.Refresh != before:
		h.failf("the grace gives another successor")
	}
	h.m.got(tokens, f, now)
}

func (h *history) verify() {
	i := h.pick(len(h.m.access))
	if i < 0 {
		return
	}
	a, now := h.m.access[i], h.w.clock.Now()
	h.note("verify access token %d of %.4s", i, a.family.id)
	g, err := h.w.Verify(context.Background(), a.token)
	h.valid(a.family.alive(now) && now.Before(a.expires), err)
	if err == nil && (g.ID != a.family.id || g.UserID != a.family.user) {
		h.failf("it is of %+v", g)
	}
}

func (h *history) revoke() {
	i := h.pick(len(h.m.refresh))
	if i < 0 {
		return
	}
	f := h.m.refresh[i].family
	h.note("revoke %.4s", f.id)
	want := f.alive(h.w.clock.Now())
	got, err := h.w.Revoke(context.Background(), h.m.refresh[i].token, client)
	if err != nil || got != want {
		h.failf("revoked %v, %v; the model says %v", got, err, want)
	}
	f.ended = true
}

func (h *history) endUser() {
	user := int64(1 + h.rng.IntN(2))
	h.note("end all of %d", user)
	want, now := 0, h.w.clock.Now()
	for _, f := range h.m.families {
		if f.user == user {
			if f.alive(now) {
				want++
			}
			f.ended = true
		}
	}
	for _, c := range h.m.codes {
		if c.family.user == user {
			c.cleared = true
		}
	}
	if n, err := h.w.EndUser(context.Background(), user); err != nil || n != want {
		h.failf("ended %d, %v; the model says %d", n, err, want)
	}
	h.w.clock.Add(time.Nanosecond) // a code of the very same moment counts as one of before
}

func (h *history) pass() {
	steps := []time.Duration{time.Second, 4 * time.Second, 20 * time.Second, 61 * time.Second, 11 * time.Minute,
		time.Hour, 23 * time.Hour}
	d := steps[min(h.rng.IntN(len(steps)), h.rng.IntN(len(steps)))]
	h.note("%v pass", d)
	h.w.clock.Add(d)
}

// compare checks the lists of each person.
func (h *history) compare() {
	now := h.w.clock.Now()
	for user := int64(1); user <= 2; user++ {
		want := []string{}
		for _, f := range h.m.families {
			if f.user == user && f.alive(now) {
				want = append(want, f.id)
			}
		}
		slices.Sort(want)
		if got := h.w.ids(user); !slices.Equal(got, want) {
			h.failf("%d has %v; the model says %v", user, got, want)
		}
	}
}

func (h *history) run(steps int) {
	// Weights: what clients do often happens often.
	moves := []struct {
		weight int
		move   func()
	}{{8, h.issue}, {10, h.redeem}, {30, h.refreshOne}, {25, h.verify}, {2, h.revoke}, {1, h.endUser}, {24, h.pass}}
	for range steps {
		n := h.rng.IntN(100)
		for _, m := range moves {
			if n -= m.weight; n < 0 {
				m.move()
				break
			}
		}
		if h.rng.IntN(20) == 0 {
			h.compare()
		}
	}
	h.compare()
}

func TestHistories(t *testing.T) {
	t.Parallel()
	lives := []lifetimes{
		life,
		{Access: 10 * time.Minute, Refresh: 2 * time.Hour, Max: 0, Grace: 10 * time.Minute},
		{Access: 24 * time.Hour, Refresh: time.Hour, Max: 5 * time.Hour, Grace: 0},
	}
	runs := 400
	if testing.Short() {
		runs = 60
	}
	for seed := range runs {
		l := lives[seed%len(lives)]
		w := newWorld(t, withLife(l))
		h := &history{t: t, w: w, m: &model{life: l}, rng: rand.New(rand.NewPCG(uint64(seed), 1))}
		h.run(200)
	}
}

// TestHistoriesInASealedFile runs some of them over what a real server uses.
func TestHistoriesInASealedFile(t *testing.T) {
	t.Parallel()
	clock := kvtest.NewClock()
	f, err := kv.OpenFile(filepath.Join(t.TempDir(), "aegis.db"), kv.FileOptions{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := newWorld(t, withLife(life), withClock(clock), withStore(kv.Sealed(f, ring(t, keyA))))
	h := &history{t: t, w: w, m: &model{life: life}, rng: rand.New(rand.NewPCG(1, 2))}
	h.run(400)
}

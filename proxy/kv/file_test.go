package kv_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"aegis/proxy/kv"
	"aegis/proxy/kv/kvtest"
)

func TestFileIsForItsOwner(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("file modes say nothing here")
	}
	path := filepath.Join(t.TempDir(), "new", "aegis.db")
	f := openFile(t, path, kv.FileOptions{})
	mode := func(path string) os.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if got := mode(path); got != 0o600 {
		t.Errorf("file mode %o", got)
	}
	if got := mode(filepath.Dir(path)); got != 0o700 {
		t.Errorf("folder mode %o", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	openFile(t, path, kv.FileOptions{})
	if got := mode(path); got != 0o600 {
		t.Errorf("opened again, mode %o", got)
	}
}

func TestFileKeepsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	clock := kvtest.NewClock()
	path := filepath.Join(t.TempDir(), "aegis.db")
	f := openFile(t, path, kv.FileOptions{Now: clock.Now})
	put(t, f, "ever", "1", 0)
	put(t, f, "hour", "2", time.Hour)
	put(t, f, "minute", "3", time.Minute)
	put(t, f, "gone", "4", 0)
	if err := f.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	before, err := f.Get(t.Context(), "hour")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	clock.Add(2 * time.Minute)
	f = openFile(t, path, kv.FileOptions{Now: clock.Now})
	if get(t, f, "ever") != "1" || get(t, f, "hour") != "2" {
		t.Error("lost")
	}
	for _, key := range []string{"minute", "gone"} {
		if _, err := f.Get(t.Context(), key); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if v, err := f.CompareAndSwap(t.Context(), "hour", before.Version, nil, 0); err != nil || v <= before.Version {
		t.Errorf("version %d after %d, %v", v, before.Version, err)
	}
}

// TestKilledProcessLosesNothing copies the file while the store is open and
// written to, which is what a killed process leaves behind.
func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "aegis.db")
	f := openFile(t, path, kv.FileOptions{})
	rng := rand.New(rand.NewPCG(1, 2))
	want := map[string]string{}
	for i := range 300 {
		key := fmt.Sprint("k/", rng.IntN(40))
		if rng.IntN(4) == 0 {
			if err := f.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			delete(want, key)
		} else {
			want[key] = strings.Repeat(fmt.Sprint(i, ","), rng.IntN(2000)+1)
			put(t, f, key, want[key], 0)
		}
		if i%20 != 0 {
			continue
		}
		left, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sameStore(t, left, want)
	}
}

// sameStore checks that the file with this content holds just what is wanted.
func sameStore(t *testing.T, content []byte, want map[string]string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f := openFile(t, path, kv.FileOptions{})
	defer f.Close()
	n := 0
	for key, err := range f.Keys(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if n++; get(t, f, key) != want[key] {
			t.Errorf("%s differs", key)
		}
	}
	if n != len(want) {
		t.Errorf("%d keys, want %d", n, len(want))
	}
}

func TestSecondOpenerIsSentAway(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "aegis.db")
	first := openFile(t, path, kv.FileOptions{})
	put(t, first, "a", "1", 0)
	f, err := kv.OpenFile(path, kv.FileOptions{})
	if !errors.Is(err, kv.ErrInUse) || f != nil || !strings.Contains(err.Error(), "another Aegis uses") || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	put(t, first, "a", "2", 0) // it was sent away while the first had the file
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if got := get(t, openFile(t, path, kv.FileOptions{}), "a"); got != "2" {
		t.Errorf("%q", got)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	clock := kvtest.NewClock()
	path := filepath.Join(t.TempDir(), "aegis.db")
	f := openFile(t, path, kv.FileOptions{Now: clock.Now, Sweep: -1})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 150 {
				put(t, f, fmt.Sprint("short/", w, "/", i), "v", time.Minute)
			}
		})
	}
	wg.Wait()
	put(t, f, "ever", "v", 0)
	put(t, f, "renewed", "v", time.Minute)
	put(t, f, "renewed", "v", time.Hour)
	put(t, f, "for ever now", "v", time.Minute)
	put(t, f, "for ever now", "v", 0)
	put(t, f, "deleted", "v", time.Minute)
	if err := f.Delete(t.Context(), "deleted"); err != nil {
		t.Fatal(err)
	}
	put(t, f, "deleted", "came back", 2*time.Hour)
	if n, err := f.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("nothing is due: %d, %v", n, err)
	}
	clock.Add(time.Minute)
	if n, err := f.Sweep(t.Context()); n != 1200 || err != nil {
		t.Errorf("swept %d of 1200, %v", n, err)
	}
	if data, expiry := kv.Count(f); data != 4 || expiry != 2 {
		t.Errorf("%d keys and %d expiries are left", data, expiry)
	}
	clock.Add(time.Hour)
	if n, err := f.Sweep(t.Context()); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if get(t, f, "ever")+get(t, f, "for ever now")+get(t, f, "deleted") != "vvcame back" {
		t.Error("swept too much")
	}
}

func TestSweepsByItself(t *testing.T) {
	t.Parallel()
	clock := kvtest.NewClock()
	asked := make(chan struct{}, 1)
	now := func() time.Time {
		select {
		case asked <- struct{}{}:
		default:
		}
		return clock.Now()
	}
	f := openFile(t, filepath.Join(t.TempDir(), "aegis.db"), kv.FileOptions{Now: now, Sweep: time.Millisecond, Failed: func(err error) { t.Error(err) }})
	put(t, f, "a", "v", time.Minute)
	clock.Add(time.Hour)
	for {
		if data, expiry := kv.Count(f); data == 0 && expiry == 0 {
			return
		}
		<-asked // the sweeper is at work
	}
}

func TestMemoryForgetsWhatExpired(t *testing.T) {
	t.Parallel()
	clock := kvtest.NewClock()
	m := kv.NewMemory(clock.Now)
	for i := range 20000 {
		put(t, m, fmt.Sprint("k/", i), "v", time.Second)
		clock.Add(10 * time.Millisecond) // a hundred are alive at a time
	}
	if n := kv.Held(m); n > 2000 {
		t.Errorf("%d entries are held", n)
	}
}

// TestUnfitFiles: each is refused with words, none ends the process.
func TestUnfitFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := filepath.Join(dir, "good.db")
	f := openFile(t, good, kv.FileOptions{})
	for i := range 200 {
		put(t, f, fmt.Sprint("k/", i), strings.Repeat("v", 1000), 0)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	metas := bytes.Clone(text)
	clear(metas[:2*page])
	for name, content := range map[string][]byte{
		"text":    []byte("auth:\n  oauth: {}\n"),
		"garbage": bytes.Repeat([]byte("garbage!"), page),
		"zeroes":  make([]byte, 8*page),
		"metas":   metas,
		"head":    text[:page],
		"half":    text[:len(text)/2],
		"pages":   text[:3*page],
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := kv.OpenFile(path, kv.FileOptions{})
		if err == nil {
			_ = f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "restore it from a backup") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := kv.OpenFile(dir, kv.FileOptions{}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
}

// TestDamagedPages: whatever byte is wrong, an open says so or gives a store.
func TestDamagedPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := filepath.Join(dir, "good.db")
	f := openFile(t, good, kv.FileOptions{})
	put(t, f, "k", "v", 0)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	for at := range 8 * 24 {
		bad := bytes.Clone(text)
		bad[at/24*page+at%24] ^= 0xff
		path := filepath.Join(dir, "bad.db")
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if f, err := kv.OpenFile(path, kv.FileOptions{}); err == nil {
			_ = f.Close()
		} else if !strings.Contains(err.Error(), path) {
			t.Errorf("byte %d: %v", at, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFullFileRefusesAndLives(t *testing.T) {
	t.Parallel()
	f := openFile(t, filepath.Join(t.TempDir(), "aegis.db"), kv.FileOptions{MaxBytes: 1 << 20})
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		err = f.Put(t.Context(), fmt.Sprint("k/", n), bytes.Repeat([]byte("v"), 50_000), 0)
	}
	if !errors.Is(err, kv.ErrFull) || n < 15 {
		t.Fatalf("after %d puts: %v", n, err)
	}
	if got := get(t, f, "k/0"); len(got) != 50_000 {
		t.Errorf("%d bytes", len(got))
	}
	if _, err := f.CompareAndSwap(t.Context(), "new", 0, nil, 0); !errors.Is(err, kv.ErrFull) {
		t.Errorf("swap: %v", err)
	}
	for i := range 10 {
		if err := f.Delete(t.Context(), fmt.Sprint("k/", i)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, f, "again", "v", 0)
}

func BenchmarkFile(b *testing.B) {
	s := kv.Sealed(openFile(b, filepath.Join(b.TempDir(), "aegis.db"), kv.FileOptions{}), newRing(b, keyA))
	value := strings.Repeat("x", 500)
	b.Run("Put", func(b *testing.B) {
		for b.Loop() {
			put(b, s, "a", value, time.Hour)
		}
	})
	b.Run("PutParallel", func(b *testing.B) {
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				put(b, s, fmt.Sprint("k/", rand.IntN(1000)), value, time.Hour)
			}
		})
	})
	b.Run("Get", func(b *testing.B) {
		for b.Loop() {
			get(b, s, "a")
		}
	})
}

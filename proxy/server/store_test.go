package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy/kv/open"
	"aegis/proxy/kv/redistest"
	"aegis/proxy/server"
)

// configured writes the house's configuration with another store, and loads it.
func (h *house) configured(name, store string) (file string, cfg *config.Config) {
	h.t.Helper()
	text, err := os.ReadFile(h.file)
	if err != nil {
		h.t.Fatal(err)
	}
	file = filepath.Join(filepath.Dir(h.file), name)
	if err := os.WriteFile(file, append(text, "store: "+store+"\n"...), 0o600); err != nil {
		h.t.Fatal(err)
	}
	if cfg, err = config.Load(file); err != nil {
		h.t.Fatal(err)
	}
	return file, cfg
}

// TestMigrateStore: sign-ins move from the file to Redis and back, and work on.
func TestMigrateStore(t *testing.T) {
	redis := redistest.Start(t)
	h := newHouse(t, houseOptions{})
	a := h.newApp()
	r := a.connect("alice")
	keys := filepath.Join(h.dir, "store.keys")
	_, inFile := h.configured("file.yaml", "{}")
	redisFile, inRedis := h.configured("redis.yaml", fmt.Sprintf("{kind: redis, url: \"redis://%s\", key_file: %q}", redis.Address, keys))
	backFile, back := h.configured("back.yaml", fmt.Sprintf("{path: %q, key_file: %q}", filepath.Join(h.dir, "back.db"), keys))
	_, others := h.configured("others.yaml", fmt.Sprintf("{kind: redis, url: \"redis://%s/1\", keys: [%s]}", redis.Address, replicaKey))

	if _, err := open.Migrate(t.Context(), inFile, inRedis); err == nil || !strings.Contains(err.Error(), "stop the one") {
		t.Errorf("while it is in use: %v", err)
	}
	h.stop()
	if _, err := open.Migrate(t.Context(), inFile, others); err == nil || !strings.Contains(err.Error(), "lack key") {
		t.Errorf("to a store with other keys: %v", err)
	}
	m, err := open.Migrate(t.Context(), inFile, inRedis)
	if err != nil || m.Copied < 4 {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := open.Migrate(t.Context(), inFile, inRedis); err == nil || !strings.Contains(err.Error(), "holds entries already") {
		t.Errorf("a second time: %v", err)
	}
	on := func(file string) {
		t.Helper()
		h.file = file
		h.serve(h.listen(h.addr))
		h.works(r.field("access_token"), "alice")
		if r = a.refresh(r.field("refresh_token")); r.status != http.StatusOK {
			t.Fatalf("refresh: %d %s", r.status, r.body)
		}
		h.works(r.field("access_token"), "alice")
		h.stop()
	}
	on(redisFile)
	for _, f := range open.Check(t.Context(), inRedis) {
		if f.Grade == "failure" {
			t.Errorf("check: %+v", f)
		}
	}
	if list, err := server.Operator(inRedis).List(t.Context()); err != nil || len(list) != 1 || list[0].Login != "alice" {
		t.Errorf("%v, %v", list, err)
	}
	if m, err = open.Migrate(t.Context(), inRedis, back); err != nil || m.Copied < 4 {
		t.Fatalf("%+v, %v", m, err)
	}
	on(backFile)
}

package config_test

import (
	"slices"
	"strings"
	"testing"

	"aegis/config"
)

const redisStore = minimal + "store:\n  kind: redis\n  keys: [key-of-all-replicas-0123456789-0123456789]\n"

func TestStoreAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url       string
		addresses []string
		database  int
		encrypted bool
	}{
		{"redis://127.0.0.1", []string{"127.0.0.1:6379"}, 0, false},
		{"rediss://redis.example.org:7000/12", []string{"redis.example.org:7000"}, 12, true},
		{"redis://[2001:db8::1]/3", []string{"[2001:db8::1]:6379"}, 3, false},
		{"redis://[::1]:1", []string{"[::1]:1"}, 0, false},
	} {
		s := mustParse(t, redisStore+"  url: \""+c.url+"\"\n").Store
		if got := s.Addresses(); !slices.Equal(got, c.addresses) || s.Database() != c.database || s.Encrypted() != c.encrypted || !s.Shared() {
			t.Errorf("%s: %q, database %d, encrypted %v", c.url, got, s.Database(), s.Encrypted())
		}
	}
	s := mustParse(t, redisStore+"  url: redis://10.0.0.1:26379\n  nodes: [\"10.0.0.2:26379\"]\n  sentinel: {master: main}\n").Store
	if got := s.Addresses(); !slices.Equal(got, []string{"10.0.0.1:26379", "10.0.0.2:26379"}) {
		t.Errorf("%q", got)
	}
	if s := config.Default().Store; s.Shared() || s.Addresses() != nil {
		t.Errorf("the default is %+v", s)
	}
}

func TestStoreWarns(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{
		"redis://127.0.0.1": false, "redis://[::1]": false, "redis://localhost": false,
		"rediss://10.0.0.1": false, "redis://10.0.0.1": true, "redis://redis.example.org:6379/1": true,
	} {
		ws := mustParse(t, redisStore+"  url: \""+url+"\"\n").Warnings()
		got := slices.ContainsFunc(ws, func(p config.Problem) bool { return strings.Contains(p.String(), "store.url: is not encrypted") })
		if got != want {
			t.Errorf("%s: warned is %v: %v", url, got, ws)
		}
	}
}

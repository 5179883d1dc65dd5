package catalog_test

import (
	"testing"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/catalog"

	"github.com/tiktoken-go/tokenizer"
)

// tokens counts with the tokenizer of current models.
func tokens(tb testing.TB, tools []*proxy.Tool) int {
	tb.Helper()
	enc, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		tb.Fatal(err)
	}
	total := 0
	for _, t := range tools {
		n, err := enc.Count(string(catalog.ListEntry(t)))
		if err != nil {
			tb.Fatal(err)
		}
		total += n
	}
	return total
}

// TestListIsCheap holds the token budgets of the two modes.
func TestListIsCheap(t *testing.T) {
	t.Parallel()
	set := builtin(t)
	full, _ := set.Select(config.Tools{Raw: true})
	got := tokens(t, full.Tools())
	if average := float64(got) / float64(len(full.Tools())); average > 165 {
		t.Errorf("full mode costs %.1f tokens a tool; the budget is 165", average)
	} else {
		t.Logf("full mode: %d tokens, %.1f a tool", got, average)
	}
	search, _ := set.Select(config.Tools{Mode: "search", Raw: true})
	if got := tokens(t, search.Tools()); got > 2500 {
		t.Errorf("search mode costs %d tokens; the budget is 2500", got)
	} else {
		t.Logf("search mode: %d tokens", got)
	}
}

// TestEstimate compares the estimate with the tokenizer.
func TestEstimate(t *testing.T) {
	t.Parallel()
	set := builtin(t)
	for _, cfg := range []config.Tools{
		{Raw: true}, {Mode: "search", Raw: true}, {Toolsets: []string{"issue"}}, {Toolsets: []string{"reader"}}, {Toolsets: []string{"admin"}},
	} {
		sel, problems := set.Select(cfg)
		if len(problems) != 0 {
			t.Fatal(problems)
		}
		want, got := tokens(t, sel.Tools()), sel.Cost().Total.Tokens
		if ratio := float64(got) / float64(want); ratio < 0.97 || ratio > 1.03 {
			t.Errorf("%v: estimated %d, tokenizer %d (%.2f)", cfg.Toolsets, got, want, ratio)
		} else {
			t.Logf("%v %v: estimated %d, tokenizer %d (%.3f)", cfg.Mode, cfg.Toolsets, got, want, ratio)
		}
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	sel, _ := builtin(t).Select(config.Tools{Toolsets: []string{"issue", "pull"}})
	costs := sel.Cost()
	var sum catalog.Cost
	for domain, c := range costs.Domains {
		if domain != "issue" && domain != "pull" {
			t.Errorf("costs of %s, which is not selected", domain)
		}
		sum.Tools += c.Tools
		sum.Bytes += c.Bytes
		sum.Tokens += c.Tokens
	}
	if sum != costs.Total || sum.Tools != len(sel.Tools()) {
		t.Errorf("domains sum to %+v, total is %+v, %d tools", sum, costs.Total, len(sel.Tools()))
	}
}

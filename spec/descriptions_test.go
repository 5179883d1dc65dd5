package spec_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"aegis/spec"
)

// TestDescriptions refuses what would leave a model guessing: no words, the
// words of another tool, too many words, or none beyond the name.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	cat := builtin(t)
	titles, texts := map[string]string{}, map[string]string{}
	for i := range cat.Operations {
		o := &cat.Operations[i]
		switch n := utf8.RuneCountInString(o.Description); {
		case strings.HasPrefix(o.Description, "Calls "+o.Method+" "):
			t.Errorf("%s (%s) has no description of its own", o.ID, o.Name)
		case n < 20 || n > 400:
			t.Errorf("%s: a description of %d characters", o.ID, n)
		case strings.Contains(o.Description, "{"):
			t.Errorf("%s: an unresolved reference", o.ID)
		case saysNoMore(o):
			t.Errorf("%s: the description says no more than the name", o.ID)
		}
		if n := utf8.RuneCountInString(o.Title); n == 0 || n > 60 {
			t.Errorf("%s: a title of %d characters", o.ID, n)
		}
		for text, seen := range map[string]map[string]string{o.Description: texts, o.Title: titles} {
			if other, twice := seen[text]; twice {
				t.Errorf("%s and %s are both called %q", o.ID, other, text)
			}
			seen[text] = o.ID
		}
	}
}

// TestAliases wants other words for every operation, short ones, and none for two.
func TestAliases(t *testing.T) {
	t.Parallel()
	cat := builtin(t)
	seen := map[string]string{}
	for i := range cat.Operations {
		o := &cat.Operations[i]
		if n := len(o.Aliases); n < 4 {
			t.Errorf("%s has %d aliases; people need at least 4 ways to find it", o.ID, n)
		}
		for _, a := range o.Aliases {
			key := strings.ToLower(a)
			if other, twice := seen[key]; twice {
				t.Errorf("%q stands for %s and %s", a, other, o.ID)
			}
			seen[key] = o.ID
			if n := utf8.RuneCountInString(a); n < 3 || n > spec.MaxAlias || strings.TrimSpace(a) != a {
				t.Errorf("%s: the alias %q has %d characters or blanks around it", o.ID, a, n)
			}
			if key == strings.ToLower(o.Title) || strings.Contains(key, "gitea_") {
				t.Errorf("%s: the alias %q is what search knows already", o.ID, a)
			}
		}
	}
}

var word = regexp.MustCompile(`[a-z]+`)

// saysNoMore reports whether every word of a description is in the tool's name
// or title, or is a filler.
func saysNoMore(o *spec.Operation) bool {
	known := map[string]bool{}
	for _, w := range word.FindAllString(strings.ToLower(o.Name+" "+o.Title), -1) {
		known[strings.TrimSuffix(w, "s")] = true
	}
	for _, w := range strings.Fields("a an the of for to in on and or is are this that it its with by from gitea get return list one all give") {
		known[w] = true
	}
	for _, w := range word.FindAllString(strings.ToLower(o.Description), -1) {
		if !known[strings.TrimSuffix(w, "s")] {
			return false
		}
	}
	return true
}

// TestArgumentsAreDescribed wants words for every argument and every part of
// one, and no Markdown in them.
func TestArgumentsAreDescribed(t *testing.T) {
	t.Parallel()
	cat := builtin(t)
	for i := range cat.Operations {
		o := &cat.Operations[i]
		for j := range o.Params {
			p := &o.Params[j]
			for _, problem := range undescribed(t, p.Name, cat.Schema(p)) {
				t.Errorf("%s: %s", o.ID, problem)
			}
		}
	}
}

func undescribed(t *testing.T, at string, raw json.RawMessage) (problems []string) {
	var s struct {
		Description string
		Items       json.RawMessage
		Properties  map[string]json.RawMessage
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	switch n := utf8.RuneCountInString(s.Description); {
	case n == 0 && !strings.HasSuffix(at, "[]"):
		problems = append(problems, at+" has no description")
	case n > 300:
		problems = append(problems, at+" has a long description")
	case strings.Contains(s.Description, "**") || strings.Contains(s.Description, "]("):
		problems = append(problems, at+" is described in Markdown")
	}
	if s.Items != nil {
		problems = append(problems, undescribed(t, at+"[]", s.Items)...)
	}
	for name, sub := range s.Properties {
		problems = append(problems, undescribed(t, strings.TrimSuffix(at, "[]")+"."+name, sub)...)
	}
	return problems
}

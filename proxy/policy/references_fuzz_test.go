package policy_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"aegis/config"
)

// model finds references as Gitea does in texts of a small part of Markdown: lines and
// their breaks, addresses in angle brackets, links. It shares nothing with the judge.
func model(text string) (names []string) {
	names = scan(text)
	lines := strings.SplitAfter(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	var joined strings.Builder
	for i, line := range lines {
		if i > 0 {
			line = strings.TrimLeft(line, " \t>")
		}
		body, ended := strings.CutSuffix(line, "\n")
		switch {
		case ended && strings.HasSuffix(body, `\`) && !strings.HasSuffix(body, `\\`):
			joined.WriteString(strings.TrimSuffix(body, `\`))
		case ended && strings.HasSuffix(body, "  "):
			joined.WriteString(strings.TrimRight(body, " "))
		default:
			joined.WriteString(line)
		}
	}
	names = append(names, scan(joined.String())...)
	for _, start := range []string{"<", "]("} {
		for rest := text; ; {
			before, after, found := strings.Cut(rest, start)
			if !found {
				break
			}
			end := strings.IndexAny(after, "<>() \t\r\n")
			if end > 0 && (after[end] == '>') == (start == "<") && after[end] != '<' {
				names = append(names, address(before, after[:end], start == "<")...)
			}
			rest = after
		}
	}
	return names
}

// address reads one address; before is what stands before it in its line. An address in angle brackets
// becomes text when its path has one slash too many.
func address(before, text string, angled bool) (names []string) {
	u, err := url.Parse(text)
	if err != nil || u.Host != "" && !strings.EqualFold(u.Host, "git.example") || angled && u.Scheme == "" {
		return nil
	}
	path, double := strings.CutPrefix(u.EscapedPath(), "//")
	if double && angled {
		path = "/" + path
	} else {
		path = u.EscapedPath()
	}
	part := strings.Split(path, "/")
	if len(part) != 5 || part[0] != "" || part[3] != "issues" && part[3] != "pulls" {
		return nil
	}
	short := part[1] + "/" + part[2] + "#" + part[4]
	if double && angled {
		if strings.ContainsAny(before, "\n<>()[]*_`~\\|") {
			return nil // it is joined with something that only Markdown tells
		}
		short = before + short
	}
	return scan(short)
}

const nameSigns = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// scan finds owner/name#1 between spaces and brackets.
func scan(text string) (names []string) {
	for i := range len(text) {
		if text[i] != '#' && text[i] != '!' {
			continue
		}
		rest := strings.TrimLeft(text[i+1:], "0123456789")
		if len(rest) == len(text)-i-1 || rest != "" && !strings.ContainsAny(rest[:1], " \t\n\r\f)]") {
			continue
		}
		before := strings.TrimRight(text[:i], nameSigns)
		name, found := text[len(before):i], strings.HasSuffix(before, "/")
		before = strings.TrimSuffix(before, "/")
		head := strings.TrimRight(before, nameSigns)
		owner := before[len(head):]
		if found && strings.Trim(owner, ".") != "" && strings.Trim(name, ".") != "" &&
			(head == "" || strings.ContainsAny(head[len(head)-1:], " \t\n\r\f([")) {
			names = append(names, strings.ToLower(owner+"/"+name))
		}
	}
	return names
}

// TestModel: what the model finds in the table is what Gitea found, and it finds the attacks.
func TestModel(t *testing.T) {
	t.Parallel()
	found := 0
	for _, row := range tableOfReferences(t) {
		if row.Mounted || strings.ContainsAny(row.Text, "|`") || strings.HasPrefix(row.Text, "# ") ||
			strings.Contains(row.Text, "<!--") {
			continue // no part of it
		}
		for _, name := range model(row.Text) {
			if has := slices.ContainsFunc(slices.Concat(row.Plain, row.Body), func(ref string) bool {
				return strings.HasPrefix(ref, name+"#")
			}); !has {
				t.Errorf("%q: the model finds %s, Gitea %q and %q", row.Text, name, row.Plain, row.Body)
			}
			found++
		}
	}
	if found < 60 {
		t.Errorf("the model found %d references", found)
	}
}

// FuzzReferences compares the judge with the model: whatever it finds outside is refused, by
// a binding and by a rule that denies nothing else.
func FuzzReferences(f *testing.F) {
	for _, row := range tableOfReferences(f) {
		f.Add(row.Text)
	}
	bind := judge(f, bound(), false)
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range model(text) {
			owner, repo, _ := strings.Cut(name, "/")
			if len(name) > 100 || strings.Trim(owner[:1], "-._") == "" || strings.Contains(repo, ".") {
				continue // none of Gitea's, or judged by another name
			}
			if name != "acme/web" && bind.Refers(text) == "" {
				t.Errorf("%q refers to %s and passes a binding", text, name)
			}
			if judge(t, config.Policy{Repos: config.Patterns{Deny: []string{name}}}, false).Refers(text) == "" {
				t.Errorf("%q passes a rule that denies %s", text, name)
			}
		}
	})
}

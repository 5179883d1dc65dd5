package confirm

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode"

	"aegis/proxy"
)

// factsTimeout bounds asking how much a repository holds: the question is worth
// more than the number in it.
const factsTimeout = 3 * time.Second

// subject is what a question is about.
type subject struct {
	text   string // "Delete a repository: acme/infra (214 open issues and pull requests)"
	retype string // what a person types to permit something destructive
}

func (s subject) question() string {
	q := "An AI agent wants to do this in your name: " + s.text + "."
	if s.retype != "" {
		return q + " This cannot be taken back easily. To permit it, type " + s.retype
	}
	return q + " Permit it?"
}

// subject describes a call in words that a person can judge. It quotes names that
// the model gave, cleaned, and nothing else of the arguments.
func (c *Confirm) subject(ctx context.Context, call *proxy.Call) subject {
	names := objectOf(call)
	text := clean(call.Tool.Title)
	if text == "" {
		text = call.Tool.Name
	}
	if call.Tool.OperationID == "" { // a route that the catalog lacks
		text += ": " + call.Tool.Method + " " + clean(stringOf(call.Args["path"]))
	}
	if len(names.shown) > 0 {
		text += ": " + strings.Join(names.shown, ", ")
	}
	s := subject{text: text}
	if call.Tool.Class() != proxy.ClassDestructive {
		return s
	}
	s.retype = names.retype
	if names.owner != "" && names.wholeRepo && c.o.Facts != nil {
		ctx, cancel := context.WithTimeout(ctx, factsTimeout)
		defer cancel()
		if facts, err := c.o.Facts.RepoFacts(ctx, call.Identity.Credential, names.owner, names.repo); err == nil && facts != "" {
			s.text += " (" + clean(facts) + ")"
		}
	}
	return s
}

// object is what the path arguments of a call name.
type object struct {
	owner, repo string
	wholeRepo   bool // the path ends at the repository
	shown       []string
	retype      string
}

// objectOf reads the path arguments: owner and repo together, the others with
// their names.
func objectOf(call *proxy.Call) object {
	var o object
	var last string
	for i := range call.Tool.Params {
		p := &call.Tool.Params[i]
		if p.In != proxy.InPath {
			continue
		}
		value := clean(stringOf(call.Args[p.Name]))
		if p.Fixed != "" {
			value = clean(p.Fixed)
		}
		switch {
		case value == "":
		case p.Name == "owner":
			o.owner = value
		case p.Name == "repo":
			o.repo = value
			o.shown = append(o.shown, o.owner+"/"+value)
			last = o.owner + "/" + value
		default:
			o.shown = append(o.shown, strings.ReplaceAll(p.Name, "_", " ")+" "+value)
			last = value
		}
	}
	if o.owner != "" && o.repo == "" {
		o.shown = append([]string{o.owner}, o.shown...)
		if last == "" {
			last = o.owner
		}
	}
	o.wholeRepo = strings.HasSuffix(call.Tool.Path, "/{owner}/{repo}")
	if last == "" {
		last = call.Tool.Name
	}
	o.retype = last
	return o
}

// stringOf returns a text or number of the arguments, "" for anything else.
func stringOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case int:
		return strconv.Itoa(v)
	}
	return ""
}

// maxName bounds what a question quotes of one name, in characters.
const maxName = 200

// clean keeps what prints, so that a name cannot rewrite the question around it.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	n := 0
	for i := range s {
		if n++; n > maxName {
			return s[:i] + "…"
		}
	}
	return s
}

package confirm

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
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
// the model gave, cleaned, and nothing else of the arguments: those in the path, and
// those in the body that say to whom or where something goes, or what it becomes.
func (c *Confirm) subject(ctx context.Context, call *proxy.Call) subject {
	names := objectOf(call)
	text := clean(call.Tool.Title)
	if text == "" {
		text = call.Tool.Name
	}
	if call.Tool.Path == "" { // the raw tool: its title says nothing of what it does
		text += ": " + call.Tool.Method + " " + clean(stringOf(call.Args["path"]))
		if name := c.o.Operations[call.Tool.OperationID]; name != "" {
			text += " (" + name + ")"
		}
	} else if len(names.shown) > 0 {
		text += ": " + strings.Join(names.shown, ", ")
	}
	if to := destinations(call); len(to) > 0 {
		text += ", with " + strings.Join(to, ", ")
	}
	if call.Options.Sudo != "" {
		text += ", as the user " + clean(call.Options.Sudo)
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

// destinationWords are the members of bodies without which nobody can judge a call:
// a repository is transferred to somebody, made public, or merged in some way; a right
// is given to someone.
var destinationWords = []string{"title", "state", "private", "visibility", "archived", "default_branch", "branch", "new_branch", "tag_name", "do", "Do", "admin", "is_admin", "new_owner", "organization", "new_name", "new_repo_name", "username", "login_name", "owner", "name", "permission", "remote_address", "clone_addr", "url"}

// destinations returns what of these a call's body has, with their names.
func destinations(call *proxy.Call) (shown []string) {
	args := map[string]any{}
	for i := range call.Tool.Params {
		p := &call.Tool.Params[i]
		switch v := call.Args[p.Name].(type) {
		case map[string]any:
			if p.In == proxy.InWhole { // the raw tool's body
				maps.Copy(args, v)
			}
		default:
			if p.In == proxy.InBody || p.In == proxy.InForm {
				args[p.Wire] = v
			}
		}
	}
	for _, word := range destinationWords {
		if value := stringOf(args[word]); value != "" {
			shown = append(shown, strings.ReplaceAll(word, "_", " ")+" "+clean(addressOnly(value)))
		}
	}
	return shown
}

// addressOnly returns a URL without what may be a secret in it: user, password and
// query. Other texts stay.
func addressOnly(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return s
	}
	return u.Scheme + "://" + u.Host + u.Path
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
	case bool:
		return strconv.FormatBool(v)
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

package confirm

import (
	"cmp"
	"context"
	"maps"
	"net/url"
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

// question is what the person reads, in a client of whatever design: one line, and no
// markup.
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
	text := cmp.Or(clean(call.Tool.Title), call.Tool.Name)
	switch {
	case call.Op == nil || call.Op.Name != call.Tool.Name: // the title says nothing of what is done
		text += ": " + call.Wire.Method + " " + clean(call.Wire.Path)
		if call.Op != nil {
			text += " (" + call.Op.Name + ")"
		}
	case len(names.shown) > 0:
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
		facts, err := c.o.Facts.RepoFacts(ctx, call.Identity.Credential, names.owner, names.repo)
		if err == nil && facts != "" {
			s.text += " (" + clean(facts) + ")"
		}
	}
	return s
}

// object is what the path of a call names.
type object struct {
	owner, repo string
	wholeRepo   bool // the path ends at the repository
	shown       []string
	retype      string
}

// objectOf reads the values in the path: owner and repo together, the others with
// their names. Of a route that the catalog lacks it is the path itself.
func objectOf(call *proxy.Call) object {
	if call.Op == nil {
		return object{retype: cmp.Or(clean(call.Wire.Path), call.Tool.Name)}
	}
	var o object
	var last string
	for i := range call.Wire.Values {
		f := &call.Wire.Values[i]
		text, _ := proxy.Scalar(f.Value)
		value := clean(text)
		switch {
		case value == "":
		case f.Name == "owner":
			o.owner = value
		case f.Name == "repo":
			o.repo = value
			o.shown = append(o.shown, o.owner+"/"+value)
			last = o.owner + "/" + value
		default:
			o.shown = append(o.shown, strings.ReplaceAll(f.Name, "_", " ")+" "+value)
			last = value
		}
	}
	if o.owner != "" && o.repo == "" {
		o.shown = append([]string{o.owner}, o.shown...)
		last = cmp.Or(last, o.owner)
	}
	o.wholeRepo = strings.HasSuffix(call.Op.Path, "/{owner}/{repo}")
	o.retype = cmp.Or(last, call.Op.Name)
	return o
}

// destinationWords are the members of bodies that a person needs to judge a call:
// a repository is transferred to somebody, made public, or merged in some way; a right
// is given to someone.
var destinationWords = []string{
	"title", "state", "private", "visibility", "archived", "default_branch", "branch", "new_branch", "tag_name",
	"do", "Do", "admin", "is_admin", "new_owner", "organization", "new_name", "new_repo_name", "username", "login_name",
	"owner", "name", "permission", "remote_address", "clone_addr", "url",
}

// destinations returns what of these a call's body has, with their names.
func destinations(call *proxy.Call) (shown []string) {
	members := map[string]any{}
	for i := range call.Wire.Body {
		f := &call.Wire.Body[i]
		switch v := f.Value.(type) {
		// An object as one member is nothing that fits into a question; a whole body is
		// taken member by member.
		case map[string]any:
			if f.In == proxy.InWhole {
				maps.Copy(members, v)
			}
		default:
			if f.In == proxy.InBody || f.In == proxy.InForm {
				members[f.Name] = v
			}
		}
	}
	for _, word := range destinationWords {
		if value, _ := proxy.Scalar(members[word]); value != "" {
			shown = append(shown, strings.ReplaceAll(word, "_", " ")+" "+clean(addressOnly(value)))
		}
	}
	return shown
}

// addressOnly returns a URL without what may be a secret in it: user, password and query.
// Other texts stay. The question is shown on screens and kept in histories of chats.
func addressOnly(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return s
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// maxName bounds what a question quotes of one name, in characters. A longer one could push
// the end of the question off the screen.
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

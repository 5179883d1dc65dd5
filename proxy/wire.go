package proxy

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Wire is the request that a call means, by the names of Gitea's API and before
// anything is escaped or encoded. It is the same whether the client named the
// operation or spelled its method and path.
type Wire struct {
	// Method is the HTTP method in capitals.
	Method string
	// Path is the path below /api/v1 as plain text. Where a value holds a slash
	// that belongs to it, Values tell it apart from those of the route.
	Path string
	// Values are the values in the path, in the order of the operation's parameters;
	// none where the operation is not known.
	Values []Field
	// Query are the query's parameters and Body the members of the body, in the
	// order of the operation's parameters; those that it lacks follow by name.
	Query, Body []Field
	// Sends says what becomes of Body: InBody an object of its members, InForm a
	// form or the bytes of a file, InWhole its one value; "": there is no body.
	Sends In
}

// Field is one value of a request.
type Field struct {
	// Name is the value's name in the API.
	Name string
	// In is its place.
	In In
	// Value is as in [Arguments]; nil counts as absent.
	Value any
	// Param is the argument that gave the value and says how it is encoded. Nil:
	// the client spelled the request itself, and the value is as Gitea takes it.
	Param *Param
}

// Argument returns the name of the argument that gave the value, the value's own
// where the client spelled the request itself.
func (f *Field) Argument() string {
	if f.Param != nil {
		return f.Param.Name
	}
	return f.Name
}

// Find returns the first field of this name, nil when there is none.
func Find(fields []Field, name string) *Field {
	for i := range fields {
		if fields[i].Name == name {
			return &fields[i]
		}
	}
	return nil
}

// Target is what a call is about: the values in its path that have such names in
// Gitea's API. Zero values mean that the path has no such name.
type Target struct {
	// Owner and Repo name a repository, Owner alone an account that has things.
	Owner, Repo string
	// Org is an organization, User the login of an account (username).
	Org, User string
	// Index is the number of an issue or pull request, ID another thing's; both
	// are positive.
	Index, ID int64
}

// Resolve sets Op, Wire and Target of a call whose Args are op's own, validated.
func (c *Call) Resolve(op *Tool) {
	w := Wire{Method: op.Method}
	all := make([]Field, 0, len(c.Args))
	// take returns the arguments that go to one of the places, in wire order.
	take := func(in func(In) bool) []Field {
		from := len(all)
		for i := range op.Params {
			p := &op.Params[i]
			if v, given := c.Args[p.Name]; given && in(p.In) {
				all = append(all, Field{Name: p.Wire, In: p.In, Value: v, Param: p})
			}
		}
		return all[from:len(all):len(all)]
	}
	w.Values = take(func(in In) bool { return in == InPath })
	w.Query = take(func(in In) bool { return in == InQuery })
	w.Body = take(func(in In) bool { return in != InPath && in != InQuery })
	w.Path = op.Fill(w.Values)
	w.Sends = op.sends(w.Body)
	c.Op, c.Wire, c.Target = op, w, TargetOf(op, w.Values)
}

// sends returns what becomes of the body of an operation. Objects and forms are
// sent even when they are empty: Gitea refuses their routes without a body.
func (t *Tool) sends(body []Field) In {
	out := In("")
	for i := range t.Params {
		switch in := t.Params[i].In; {
		case in == InForm || in == InFile:
			return InForm
		case in == InBody, in == InWhole && out == "" && len(body) > 0:
			out = in
		}
	}
	return out
}

// Fill returns the operation's path with these values in their places, as plain
// text; values that are missing stay as the template has them.
func (t *Tool) Fill(values []Field) string {
	path, _ := t.Expand(func(b *strings.Builder, wire string) error {
		text := "{" + wire + "}"
		if f := Find(values, wire); f != nil {
			text, _ = Scalar(f.Value)
		}
		b.WriteString(text)
		return nil
	})
	return path
}

// Expand returns the operation's path with what write appends in place of each parameter,
// which it gets by its wire name. It ends with write's first error.
func (t *Tool) Expand(write func(b *strings.Builder, wire string) error) (string, error) {
	var b strings.Builder
	b.Grow(len(t.Path) + 64)
	for rest := t.Path; ; {
		before, after, found := strings.Cut(rest, "{")
		b.WriteString(before)
		wire, behind, closed := strings.Cut(after, "}")
		switch {
		case !found:
			return b.String(), nil
		case !closed:
			return b.String(), NewError(KindInternal, "the tool's path is broken", nil)
		}
		if err := write(&b, wire); err != nil {
			return b.String(), err
		}
		rest = behind
	}
}

// Param returns the parameter with this place and wire name, nil for none.
func (t *Tool) Param(in In, wire string) *Param {
	for i := range t.Params {
		if p := &t.Params[i]; p.In == in && p.Wire == wire {
			return p
		}
	}
	return nil
}

// TargetOf reads what a call is about from the values in an operation's path.
func TargetOf(op *Tool, values []Field) (t Target) {
	for i := range values {
		f := &values[i]
		text, _ := f.Value.(string)
		switch f.Name {
		case "owner":
			t.Owner = text
		case "repo":
			t.Repo = text
		case "org":
			t.Org = text
		case "username":
			t.User = text
		case "index":
			t.Index = op.number(f)
		case "id":
			t.ID = op.number(f)
		}
	}
	return t
}

// number returns a value as a positive number, 0 when it is none. A text is one
// only where the operation takes a number: names of things may be digits.
func (t *Tool) number(f *Field) int64 {
	n, ok := f.Value.(json.Number)
	if text, isText := f.Value.(string); isText {
		p := t.Param(f.In, f.Name)
		ok = p != nil && p.Schema != nil && p.Schema.Type == "integer" && strings.Trim(text, "0123456789") == ""
		n = json.Number(text)
	}
	i, err := n.Int64()
	if !ok || err != nil {
		return 0
	}
	return max(i, 0)
}

// Scalar returns the text of a value that is a string, a number or a boolean.
func Scalar(v any) (text string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

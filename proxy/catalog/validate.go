package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

// validate checks the arguments of a call against a tool and brings them into the form that
// the stages below rely on. All problems are told at once. A model corrects all of its
// mistakes in one further call then, instead of one for each.
func (s *Set) validate(t *proxy.Tool, raw json.RawMessage, may grants) (proxy.Arguments, proxy.CallOptions, error) {
	var opts proxy.CallOptions
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	var report problems
	// Before anything is decoded: depth and number of values bound the memory of what
	// follows.
	if err := checkText(raw); err != nil {
		return nil, opts, proxy.NewError(proxy.KindInvalidArguments, err.Error(), nil)
	}
	v := validator{set: s, report: &report}
	args := make(proxy.Arguments, len(t.Params))
	d := decoder{report: &report}
	// jsonscan does not look for duplicates, and of two values Gitea and a rule could
	// each take another.
	seen := map[string]bool{}
	for name, value := range jsonscan.Members(raw) {
		key := d.text("the name of an argument", name)
		if seen[key] {
			report.add(show(key), "is given twice")
			continue
		}
		seen[key] = true
		steers := option(t, key, may)
		p := cmp.Or(steers, param(t, key))
		if p == nil {
			if report.full() { // looking for near misses costs more than telling of none
				report.more++
				continue
			}
			report.add(show(key), unknownArgument(t, key, may.sudo))
			continue
		}
		x := d.value(p.Name, value)
		if text, ok := x.(string); ok && steers == &fieldsOption.Param {
			x = splitFields(text) // as people write them; no path has a comma
		}
		if x == nil {
			continue // as if absent
		}
		x, ok := v.value(p.Name, p.Schema, digits(p, x))
		switch {
		case !ok:
		case steers != nil:
			setOption(&opts, p.Name, x)
		default:
			args[p.Name] = x
		}
	}
	for i := range t.Params {
		p := &t.Params[i]
		if _, given := args[p.Name]; p.Required && p.Fixed == "" && !given && !report.about(p.Name) {
			report.add(p.Name, "is required")
		}
	}
	if err := report.err(t.Name); err != nil {
		return nil, proxy.CallOptions{}, err
	}
	fill(t, args)
	return args, opts, nil
}

// digits turns a whole number for a text in the path or the query into its digits. On the
// wire it is text in any case, and where Gitea takes a name or an id (milestones, labels),
// the id of an earlier result is a number. Refusing it would only send the model back for
// quotation marks.
func digits(p *proxy.Param, x any) any {
	n, ok := x.(json.Number)
	if ok && p.Schema.Type == "string" && (p.In == proxy.InPath || p.In == proxy.InQuery) && isNumber(string(n)) {
		return string(n)
	}
	return x
}

// checkText refuses arguments that are no JSON object before they are decoded.
func checkText(raw []byte) error {
	switch err := jsonscan.CheckValues(raw, maxArgumentDepth, maxArgumentValues); {
	case errors.Is(err, jsonscan.ErrValues):
		return errors.New("the arguments hold more than " + strconv.Itoa(maxArgumentValues) + " values")
	case errors.Is(err, jsonscan.ErrDepth):
		return errors.New("the arguments are nested deeper than " + strconv.Itoa(maxArgumentDepth) + " levels")
	case err != nil:
		return errors.New("the arguments are not valid JSON in UTF-8")
	case jsonscan.Kind(raw) != '{':
		return errors.New("the arguments must be a JSON object")
	}
	return nil
}

// param returns the argument of this name, nil for none. One that a binding fixed does
// not exist for a caller.
func param(t *proxy.Tool, name string) *proxy.Param {
	for i := range t.Params {
		if t.Params[i].Name == name && t.Params[i].Fixed == "" {
			return &t.Params[i]
		}
	}
	return nil
}

// about reports whether a problem of the argument name has been told.
func (p *problems) about(name string) bool {
	for _, text := range p.list {
		if rest, ok := strings.CutPrefix(text, name); ok && rest != "" && strings.IndexByte(" .[", rest[0]) >= 0 {
			return true
		}
	}
	return p.more > 0
}

// unknownArgument says why a name is refused, and what may have been meant. Names of
// options are only proposed where the call may have them: sudo must not be advertised to
// those who may not use it.
func unknownArgument(t *proxy.Tool, name string, allowSudo bool) string {
	switch lower := strings.ToLower(name); {
	// Said at once: a model that has read Gitea's documentation would try it again
	// otherwise.
	case lower == "token" || lower == "access_token":
		return "is never accepted: Aegis holds the credential"
	case lower == "sudo" && !allowSudo:
		return "is unknown"
	}
	var names []string
	for i := range t.Params {
		if t.Params[i].Fixed == "" {
			names = append(names, t.Params[i].Name)
		}
	}
	if t.Offers.Fields {
		names = append(names, "fields")
	}
	if t.Offers.Cursor {
		names = append(names, "cursor")
	}
	if len(names) == 0 {
		return "is unknown; the tool takes no arguments"
	}
	return unknownName(name, names)
}

// unknownName says that a name is none of the known ones, and which may have been meant.
func unknownName(name string, known []string) string {
	if near := config.Nearest(name, known); near != "" {
		return "is unknown; did you mean " + near + "?"
	}
	return "is unknown"
}

// grants are the arguments of Aegis's own that only some calls may have. They depend on the
// caller and the endpoint, not on the tool, so no schema can say them.
type grants struct{ sudo, code bool }

// option returns the argument of this name that steers Aegis itself, nil where the call may
// not have it. These come before the operation's own arguments, so that no catalog can take
// such a name for something else.
func option(t *proxy.Tool, name string, may grants) *proxy.Param {
	switch {
	case name == "fields" && t.Offers.Fields:
		return &fieldsOption.Param
	case name == "cursor" && t.Offers.Cursor:
		return &cursorOption.Param
	case name == "sudo" && may.sudo:
		return &sudoOption.Param
	case name == codeOption.Name && may.code:
		return &codeOption.Param
	}
	return nil
}

// setOption takes over an option. Its value has been checked, so its type is known.
func setOption(opts *proxy.CallOptions, name string, x any) {
	switch name {
	case "fields":
		for _, f := range x.([]any) {
			opts.Fields = append(opts.Fields, f.(string))
		}
	case "cursor":
		opts.Cursor = x.(string)
	case "sudo":
		opts.Sudo = x.(string)
	default:
		opts.Code = x.(string)
	}
}

// splitFields reads "number, user.login" as the list that was meant. A list in quotes and
// an empty text are no such thing. These go to the check as they are, which says what is
// wanted.
func splitFields(text string) any {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed[0] == '[' || strings.ContainsAny(text, `"'{`) {
		return text
	}
	var list []any
	for f := range strings.SplitSeq(text, ",") {
		list = append(list, strings.TrimSpace(f))
	}
	return list
}

package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"aegis/proxy"
)

// loginPattern is what a Gitea login looks like in a header.
const loginPattern = `^[\w-][\w.-]*$`

// loginRegexp is compiled here, as the option sudo belongs to no catalog.
var loginRegexp = regexp.MustCompile(loginPattern)

// validator checks decoded values. It coerces only where nothing is lost: "12" to an
// integer, "true" to a boolean, 1.0 and 1e2 to plain digits. Models write numbers and
// booleans as texts every so often, and refusing these would cost a round trip each time.
type validator struct {
	set    *Set
	report *problems
}

// value returns x as the schema wants it, or reports why it does not fit.
func (v *validator) value(path string, s *proxy.Schema, x any) (any, bool) {
	switch s.Type {
	case "string":
		return v.str(path, s, x)
	case "integer":
		return v.integer(path, s, x)
	case "number":
		return v.number(path, x)
	case "boolean":
		return v.boolean(path, x)
	case "array":
		return v.array(path, s, x)
	case "object":
		return v.object(path, s, x)
	}
	return x, true
}

// fail reports a value. What stays of it is nothing, so that no stage below sees it.
func (v *validator) fail(path, what string) (any, bool) {
	v.report.add(path, what)
	return nil, false
}

// str checks a text. Nothing is coerced to one: a number would lose how it was written.
func (v *validator) str(path string, s *proxy.Schema, x any) (any, bool) {
	text, ok := x.(string)
	if !ok {
		return v.fail(path, "must be a string")
	}
	// Characters, as JSON Schema counts; bytes are bounded by the size of the request.
	n := utf8.RuneCountInString(text)
	switch {
	case len(s.Enum) != 0 && !slices.Contains(s.Enum, text):
		return v.fail(path, "must be one of "+strings.Join(s.Enum, ", "))
	case n < s.MinLength:
		return v.fail(path, "must not be empty")
	case s.MaxLength > 0 && n > s.MaxLength:
		return v.fail(path, fmt.Sprintf("must have at most %d characters", s.MaxLength))
	case s.Pattern != "" && !v.matches(s.Pattern, text):
		return v.fail(path, "must match "+s.Pattern)
	}
	if rule := format(s.Format, text); rule != "" {
		return v.fail(path, rule)
	}
	return text, true
}

// matches looks a pattern up. One that was not compiled matches nothing, which is the
// safe answer.
func (v *validator) matches(pattern, text string) bool {
	if pattern == loginPattern {
		return loginRegexp.MatchString(text)
	}
	re := v.set.patterns[pattern]
	return re != nil && re.MatchString(text)
}

// format returns the rule that text breaks, "" when it keeps it. Formats that are not known
// here are annotations, as JSON Schema has it. Where the two could differ it is looser than
// Gitea: what Gitea takes must not be refused here.
func format(name, text string) string {
	switch name {
	case "date-time":
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return "must be a time as in RFC 3339, for example 2026-01-31T12:00:00Z"
		}
	case "date":
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			return "must be a date such as 2026-01-31"
		}
	case "email":
		at := strings.LastIndexByte(text, '@')
		if at < 1 || at == len(text)-1 || strings.ContainsAny(text, " \r\n\t<>") {
			return "must be an e-mail address"
		}
	case "uri":
		if u, err := url.Parse(text); err != nil || u.Scheme == "" {
			return "must be an absolute URL"
		}
	}
	return ""
}

// integer checks a whole number, which models also write as a text. Beyond 64 bits Gitea's
// decoder would refuse the whole body, with an error that names no argument.
func (v *validator) integer(path string, s *proxy.Schema, x any) (any, bool) {
	var n int64
	var ok bool
	switch x := x.(type) {
	case json.Number:
		n, ok = integral(string(x))
	case string:
		// Plain digits only: "12" is 12, but "1e2" in quotes is a mistake.
		var err error
		n, err = strconv.ParseInt(x, 10, 64)
		ok = err == nil && x[0] != '+'
	}
	switch {
	case !ok:
		return v.fail(path, "must be an integer within 64 bits")
	case s.Minimum != nil && n < *s.Minimum:
		return v.fail(path, fmt.Sprintf("must be at least %d", *s.Minimum))
	case s.Maximum != nil && n > *s.Maximum:
		return v.fail(path, fmt.Sprintf("must be at most %d", *s.Maximum))
	}
	// In plain digits, whatever the client wrote: a path or a rule must not see 1e2.
	return json.Number(strconv.FormatInt(n, 10)), true
}

// integral reads a JSON number that is whole and fits into 64 bits, however it is
// written: 12, 12.0 and 1.2e1 are the same to JSON Schema.
func integral(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	mantissa, exponent := text, "0"
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], text[i+1:]
	}
	// A short text can mean a number of millions of digits, so both parts are bounded
	// before anything is computed.
	exp, err := strconv.Atoi(exponent)
	if err != nil || exp > 40 || exp < -40 || len(strings.Replace(mantissa, ".", "", 1)) > 80 {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}

// number checks a number of any kind; its text stays, as float64 would change it.
func (v *validator) number(path string, x any) (any, bool) {
	n, ok := x.(json.Number)
	if text, isText := x.(string); isText && json.Valid([]byte(text)) {
		if c := text[0]; c == '-' || c >= '0' && c <= '9' {
			n, ok = json.Number(text), true
		}
	}
	// Gitea's decoder would take its time over a number of a million digits.
	if !ok || len(n) > 100 {
		return v.fail(path, "must be a number")
	}
	return n, true
}

// boolean takes the two words as texts too. "yes", 1 and the like are refused: guessing
// wrong would change something.
func (v *validator) boolean(path string, x any) (any, bool) {
	switch x {
	case true, "true":
		return true, true
	case false, "false":
		return false, true
	}
	return v.fail(path, "must be true or false")
}

// array checks a list and each of its items, so that all problems are reported at once.
func (v *validator) array(path string, s *proxy.Schema, x any) (any, bool) {
	list, ok := x.([]any)
	switch {
	case !ok:
		return v.fail(path, "must be an array")
	case len(list) < s.MinItems:
		return v.fail(path, fmt.Sprintf("must have at least %d items", s.MinItems))
	case s.MaxItems > 0 && len(list) > s.MaxItems:
		return v.fail(path, fmt.Sprintf("must have at most %d items", s.MaxItems))
	case s.Items == nil:
		return list, true
	}
	fits := true
	for i := range list {
		var one bool
		if list[i], one = v.value(path+"["+strconv.Itoa(i)+"]", s.Items, list[i]); !one {
			fits = false
		}
	}
	return list, fits
}

// object checks the members of an object, in place: the arguments were decoded for this
// call alone.
func (v *validator) object(path string, s *proxy.Schema, x any) (any, bool) {
	object, ok := x.(map[string]any)
	if !ok {
		return v.fail(path, "must be an object")
	}
	fits := true
	// Sorted, so that the same arguments give the same problems in the same order.
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value, at := object[name], join(path, name)
		i := slices.IndexFunc(s.Properties, func(p proxy.Property) bool { return p.Name == name })
		sub := s.Items // the values of an open object
		switch {
		// Models write null for what they leave out.
		case i >= 0 && value == nil && !s.Properties[i].Required:
			delete(object, name) // as if absent
			continue
		case i >= 0:
			sub = s.Properties[i].Schema
		case !s.Open:
			v.report.add(at, unknownMember(s, name))
			fits = false
			continue
		case sub == nil:
			continue
		}
		var one bool
		if object[name], one = v.value(at, sub, value); !one {
			fits = false
		}
	}
	for _, p := range s.Properties {
		if _, given := object[p.Name]; p.Required && !given {
			v.report.add(join(path, p.Name), "is required")
			fits = false
		}
	}
	return object, fits
}

// unknownMember says what may have been meant by a member that does not exist.
func unknownMember(s *proxy.Schema, name string) string {
	var names []string
	for _, p := range s.Properties {
		names = append(names, p.Name)
	}
	return unknownName(name, names)
}

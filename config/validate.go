package config

import (
	"encoding"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Validate returns everything that is wrong with the configuration, sorted by
// place; nil when it can be used. It reads and changes nothing outside c.
func (c *Config) Validate() Problems {
	v := &validator{c: c}
	c.leaves(v.leaf)
	v.listen()
	v.urls()
	v.tokens()
	v.oauth()
	v.masking(v.c.Masking, "masking")
	v.results(v.c.Results, "results")
	v.teams()
	v.server()
	v.buckets("limits", reflect.ValueOf(c.Limits))
	v.edge()
	v.tls()
	v.audit()
	v.tracing()
	v.problems = withoutInherited(v.problems)
	v.problems.Sort()
	return v.problems
}

// validator gathers problems, or for [Config.Warnings] what is legal and still a risk.
type validator struct {
	c        *Config
	problems Problems
}

func (v *validator) add(key, what, do string) {
	v.problems = append(v.problems, v.c.Problem(key, what, do))
}

// addIf adds a problem where bad holds. Checks of one section are a list of these.
func (v *validator) addIf(bad bool, key, what, do string) {
	if bad {
		v.add(key, what, do)
	}
}

// unique refuses a text that two items of a list share, at the key leaf of each; leaf
// is "" where the items themselves are compared. Empty texts are left alone: they were
// reported as missing.
func unique[T any](v *validator, list, leaf string, items []T, text func(T) string, do string) {
	below, what := "", ""
	if leaf != "" {
		below, what = "."+leaf, "the "+leaf+" of "
	}
	first := map[string]int{}
	for i, x := range items {
		s := text(x)
		if j, twice := first[s]; !twice {
			first[s] = i
		} else if s != "" {
			v.add(item(list, i)+below, "is also "+what+item(list, j), do)
		}
	}
}

// visitor is called with a value, the field that has its tags, and its key.
type visitor func(x reflect.Value, f reflect.StructField, key string)

// leaves calls visit for each value of the file. What applies to every key is written with it,
// so that a new key cannot be forgotten there.
func (c *Config) leaves(visit visitor) {
	leaves(reflect.ValueOf(c).Elem(), reflect.StructField{}, "", visit)
}

// leaves calls visit for each value below x that no further keys are below. Items of lists and
// maps have the field of the whole.
func leaves(x reflect.Value, f reflect.StructField, key string, visit visitor) {
	switch {
	case x.Type() == reflect.TypeFor[Secret]() || isText(x):
		visit(x, f, key)
	case x.Kind() == reflect.Struct:
		for _, f := range keysOf(x.Type()) {
			leaves(x.FieldByIndex(f.Index), f, join(key, f.Tag.Get("yaml")), visit)
		}
	case x.Kind() == reflect.Slice:
		for i := range x.Len() {
			leaves(x.Index(i), f, item(key, i), visit)
		}
	case x.Kind() == reflect.Map:
		for _, k := range sortedKeys(x) {
			leaves(x.MapIndex(k), f, join(key, k.String()), visit)
		}
	case x.Kind() != reflect.Pointer:
		visit(x, f, key)
	case !x.IsNil():
		visit(x.Elem(), f, key)
	}
}

// leaf applies the rules in the tags of one value's field.
func (v *validator) leaf(x reflect.Value, f reflect.StructField, key string) {
	tag := f.Tag
	if tag.Get("required") != "" && x.IsZero() {
		v.add(key, "is required", "set it, for example to "+tag.Get("example"))
		return
	}
	if span := tag.Get("range"); span != "" {
		v.span(x, span, key)
	}
	if x.Type() == reflect.TypeFor[Secret]() {
		v.secret(x.Interface().(Secret), f, key)
		return
	}
	if x.Kind() != reflect.String {
		return
	}
	s := x.String()
	if lens := tag.Get("length"); lens != "" {
		v.length(s, lens, key)
	}
	if enum := tag.Get("enum"); enum != "" && (s != "" || tag.Get("empty") == "") {
		choices := strings.Fields(enum)
		v.addIf(!slices.Contains(choices, s), key, quote(s)+" is not one of "+strings.Join(choices, ", "),
			suggest(s, choices, "choose one of these"))
	}
	if pattern := tag.Get("pattern"); pattern != "" && !regexp.MustCompile(pattern).MatchString(s) {
		what := "is not written as it must be"
		// A token or a password may be in the wrong place there, so it is not quoted.
		if !strings.HasPrefix(key, "auth.") && key != "store.url" {
			what = quote(s) + " " + what
		}
		v.add(key, what, "write "+tag.Get("says"))
	}
}

// span holds a number, size or duration to "least greatest", both in the
// field's own notation.
func (v *validator) span(x reflect.Value, span, key string) {
	least, greatest, _ := strings.Cut(span, " ")
	lo, hi := number(x.Type(), least), number(x.Type(), greatest)
	if n := asFloat(x); !(n >= lo && n <= hi) {
		v.add(key, fmt.Sprintf("%v is out of range", x.Interface()), "choose "+least+" to "+greatest)
	}
}

// number reads one end of a range. Ranges are written in this package, and a
// test reads them all.
func number(t reflect.Type, s string) float64 {
	x := reflect.New(t)
	if u, ok := x.Interface().(encoding.TextUnmarshaler); ok {
		_ = u.UnmarshalText([]byte(s))
		return asFloat(x.Elem())
	}
	n, _ := strconv.ParseFloat(s, 64)
	return n
}

func asFloat(x reflect.Value) float64 {
	if x.CanInt() {
		return float64(x.Int())
	}
	return x.Float()
}

func (v *validator) length(s, lens, key string) {
	least, greatest := bounds(lens)
	switch n := utf8.RuneCountInString(s); {
	case n < least && least == 1:
		v.add(key, "is empty", "write a text, or remove it")
	case n < least:
		v.add(key, fmt.Sprintf("has %d characters; at least %d are needed", n, least), "make it longer")
	case n > greatest:
		v.add(key, fmt.Sprintf("has %d characters; at most %d are allowed", n, greatest), "make it shorter")
	}
}

func bounds(s string) (least, greatest int) {
	_, _ = fmt.Sscan(s, &least, &greatest) // tags are ours, and a test reads them all
	return least, greatest
}

// secret applies the rules for secrets, whose lengths are told only as bounds.
func (v *validator) secret(s Secret, f reflect.StructField, key string) {
	value := s.Reveal()
	if lens := f.Tag.Get("length"); lens != "" && (value != "" || f.Type.Kind() == reflect.Slice) {
		least, greatest := bounds(lens)
		n := utf8.RuneCountInString(value)
		if n < least {
			do := "use a longer one"
			if least >= 16 {
				do = `make one with "openssl rand -hex 32"`
			}
			v.add(key, fmt.Sprintf("is shorter than %d characters", least), do)
		}
		v.addIf(n > greatest, key,
			fmt.Sprintf("is longer than %d characters", greatest), "check that it is the right secret")
	}
	invisible := func(r rune) bool { return r <= ' ' || r > '~' }
	v.addIf(f.Tag.Get("header") != "" && strings.ContainsFunc(value, invisible), key,
		"holds a space, a control character or a character that is not ASCII",
		"check for a stray line break or quote in the secret's source")
}

// suggest asks whether the choice nearest to s was meant, or returns do when none is near.
func suggest(s string, choices []string, do string) string {
	if near := Nearest(s, choices); near != "" {
		return "did you mean " + near + "?"
	}
	return do
}

// listen checks the address, and that there is a way to authenticate: no caller is
// served without.
func (v *validator) listen() {
	host, ok := v.address("listen", v.c.Listen)
	if !ok || len(v.c.Auth.Tokens) > 0 || v.c.Auth.OAuth.Enabled {
		return
	}
	what := "lists no token while listen is open to the network; Aegis serves nobody without one"
	if loopback(host) {
		what = "lists no token, and Aegis serves nobody without one, not even on loopback"
	}
	v.add("auth.tokens", what, `make one with "openssl rand -hex 32" and list it under `+
		"auth.tokens with a name and a gitea_token, or set up auth.oauth")
}

// address returns the host of a listen address, and refuses a wrong one.
func (v *validator) address(key, listen string) (host string, ok bool) {
	host, err := listenHost(listen)
	if err != nil {
		what, do := split(err)
		v.add(key, quote(listen)+" "+what, do)
	}
	return host, err == nil
}

// listenHost returns the host of a listen address, "" for all interfaces.
func listenHost(listen string) (string, error) {
	const example = "write host:port, such as 127.0.0.1:8080, [::1]:8080 or :8080 for all interfaces"
	host, port, err := net.SplitHostPort(listen)
	switch {
	case err != nil:
		return "", &valueError{"is not host:port", example}
	case !isDigits(port) || !portNumber(port, 0):
		return "", &valueError{"has no port from 0 to 65535", example}
	case host != "" && !validHost(host):
		return "", &valueError{"has no valid host", example}
	}
	return host, nil
}

func (v *validator) urls() {
	u := v.c.Gitea.URL
	v.addIf(u != nil && strings.Contains(u.Path+"/", "/api/v1/"), "gitea.url",
		"ends in /api/v1", "write the address that a browser uses; Aegis adds /api/v1")
	v.addIf(insecure(v.c.PublicURL), "public_url",
		"is http on a host that is not loopback; tokens would cross the network readable",
		"write https, and put TLS in front of Aegis")
}

// insecure reports whether what is sent to u crosses a network in the clear.
func insecure(u *URL) bool { return u != nil && u.Scheme == "http" && !u.Loopback() }

func (v *validator) tokens() {
	tokens := v.c.Auth.Tokens
	unique(v, "auth.tokens", "name", tokens, func(t Token) string { return t.Name }, "give each token its own name")
	unique(v, "auth.tokens", "token", tokens, func(t Token) string { return t.Token.Reveal() },
		"give each identity its own token")
}

func (v *validator) masking(m Masking, section string) {
	section += ".rules"
	for i, r := range m.Rules {
		key := item(section, i)
		v.addIf(r.Regex != nil && r.Regex.Regexp != nil && matchesEmpty(r.Regex.Regexp), key+".regex",
			"matches the empty text, which is everywhere",
			"require at least one character, for example with + instead of *")
		v.replacement(r, m.Mode, key+".replacement")
	}
	unique(v, section, "name", m.Rules, func(r MaskRule) string { return r.Name }, "give each rule its own name")
}

// replacement refuses a replacement that is never used.
func (v *validator) replacement(r MaskRule, mode, key string) {
	switch {
	case r.Replacement == nil:
	case r.Action == "block" || r.Action == "report":
		v.add(key, "has no effect with action "+r.Action, "remove it, or set action: mask")
	case r.Action == "" && (mode == "block" || mode == "report"):
		v.add(key, "has no effect with masking.mode "+mode, "remove it, or set action: mask on this rule")
	}
}

// matchesEmpty reports whether the pattern can match without a character.
func matchesEmpty(re *regexp.Regexp) bool {
	tree, err := syntax.Parse(re.String(), syntax.Perl)
	return err != nil || optional(tree)
}

func optional(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune) == 0
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return false
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(s *syntax.Regexp) bool { return !optional(s) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, optional)
	case syntax.OpPlus, syntax.OpCapture:
		return optional(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || optional(re.Sub[0])
	}
	return true // stars, question marks, anchors, boundaries
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)

// toolKeys returns the keys of a section that are names of tools, in order, and refuses
// those that cannot be one.
func toolKeys[T any](v *validator, section string, tools map[string]T, example string) []string {
	names := slices.Sorted(maps.Keys(tools))
	for _, name := range names {
		v.addIf(!toolName.MatchString(name), join(section, name),
			"is not a tool's name", "write a name such as "+example)
	}
	return names
}

func (v *validator) results(r Results, section string) {
	section += ".fields_default"
	for _, name := range toolKeys(v, section, r.FieldsDefault, "gitea_issue_list") {
		n := len(r.FieldsDefault[name])
		v.addIf(n == 0 || n > 100, join(section, name), "must list 1 to 100 fields",
			"write a list such as [number, title, user.login], or remove the tool")
	}
}

func (v *validator) server() {
	for i, h := range v.c.Server.AllowedHosts {
		bare := strings.TrimSuffix(strings.TrimPrefix(h, "["), "]")
		_, err := netip.ParseAddr(bare)
		v.addIf(err != nil && bare != h || !validHost(bare), item("server.allowed_hosts", i),
			quote(h)+" is not a host name or IP address",
			"write the name alone, without scheme, port, path or wildcard")
	}
	for i, o := range v.c.Server.AllowedOrigins {
		v.addIf(!validOrigin(o), item("server.allowed_origins", i),
			quote(o)+" is not an origin", "write scheme://host or scheme://host:port, without path, user or wildcard")
	}
}

// validOrigin accepts tuple origins (RFC 6454) of any scheme, as editors have
// schemes of their own. "null" is no origin to trust.
func validOrigin(o string) bool {
	u, err := url.Parse(o)
	return err == nil && u.Scheme != "" && u.Scheme+"://"+u.Host == strings.ToLower(u.Scheme)+o[len(u.Scheme):] &&
		validHost(u.Hostname()) && validPort(u)
}

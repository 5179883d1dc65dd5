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
	v.section(reflect.ValueOf(c).Elem(), "")
	v.listen()
	v.urls()
	v.tokens()
	v.oauth()
	v.masking(v.c.Masking, "masking")
	v.results(v.c.Results, "results")
	v.teams()
	v.server()
	v.limits()
	v.edge()
	v.tls()
	v.audit()
	v.tracing()
	v.problems = withoutInherited(v.problems)
	v.problems.Sort()
	return v.problems
}

// validator gathers problems.
type validator struct {
	c        *Config
	problems Problems
}

func (v *validator) add(r rule, key, what, do string) {
	p := v.c.Problem(key, what, do)
	p.rule = r
	v.problems = append(v.problems, p)
}

// section applies the rules in the tags of a struct, and of those below it.
func (v *validator) section(s reflect.Value, key string) {
	for _, f := range keysOf(s.Type()) {
		v.field(s.FieldByIndex(f.Index), f, join(key, f.Tag.Get("yaml")))
	}
}

func (v *validator) field(x reflect.Value, f reflect.StructField, key string) {
	switch {
	case x.Type() == reflect.TypeFor[Secret]() || isText(x):
		v.leaf(x, f, key)
	case x.Kind() == reflect.Struct:
		v.section(x, key)
	case x.Kind() == reflect.Slice:
		v.items(x, f, key)
	case x.Kind() == reflect.Map:
		for _, k := range sortedKeys(x) {
			switch item := x.MapIndex(k); item.Kind() {
			case reflect.Struct:
				v.section(item, join(key, k.String()))
			case reflect.Slice:
				v.items(item, f, join(key, k.String()))
			default:
				v.leaf(item, f, join(key, k.String()))
			}
		}
	case x.Kind() == reflect.Pointer:
		if !x.IsNil() {
			v.leaf(x.Elem(), f, key)
		}
	default:
		v.leaf(x, f, key)
	}
}

func (v *validator) items(list reflect.Value, f reflect.StructField, key string) {
	for i := range list.Len() {
		item, key := list.Index(i), key+"["+strconv.Itoa(i)+"]"
		if item.Kind() == reflect.Struct && item.Type() != reflect.TypeFor[Secret]() {
			v.section(item, key)
			continue
		}
		v.leaf(item, f, key)
	}
}

// leaf applies the rules in the tags of one value's field.
func (v *validator) leaf(x reflect.Value, f reflect.StructField, key string) {
	tag := f.Tag
	if tag.Get("required") != "" && x.IsZero() {
		v.add(ruleRequired, key, "is required", "set it, for example to "+tag.Get("example"))
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
		v.enum(s, strings.Fields(enum), key)
	}
	if pattern := tag.Get("pattern"); pattern != "" && !regexp.MustCompile(pattern).MatchString(s) {
		what := "is not written as it must be"
		if !strings.HasPrefix(key, "auth.") && key != "store.url" { // there may be a token or a password in the wrong place
			what = quote(s) + " " + what
		}
		v.add(rulePattern, key, what, "write "+tag.Get("says"))
	}
}

// span holds a number, size or duration to "least greatest", both in the
// field's own notation.
func (v *validator) span(x reflect.Value, span, key string) {
	least, greatest, _ := strings.Cut(span, " ")
	lo, hi := number(x.Type(), least), number(x.Type(), greatest)
	if n := asFloat(x); !(n >= lo && n <= hi) {
		v.add(ruleRange, key, fmt.Sprintf("%v is out of range", x.Interface()), "choose "+least+" to "+greatest)
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
		v.add(ruleLength, key, "is empty", "write a text, or remove it")
	case n < least:
		v.add(ruleLength, key, fmt.Sprintf("has %d characters; at least %d are needed", n, least), "make it longer")
	case n > greatest:
		v.add(ruleLength, key, fmt.Sprintf("has %d characters; at most %d are allowed", n, greatest), "make it shorter")
	}
}

func bounds(s string) (least, greatest int) {
	a, b, _ := strings.Cut(s, " ")
	least, _ = strconv.Atoi(a)
	greatest, _ = strconv.Atoi(b)
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
			v.add(ruleLength, key, fmt.Sprintf("is shorter than %d characters", least), do)
		}
		if n > greatest {
			v.add(ruleLength, key, fmt.Sprintf("is longer than %d characters", greatest), "check that it is the right secret")
		}
	}
	if f.Tag.Get("header") != "" && strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		v.add(ruleHeader, key, "holds a space, a control character or a character that is not ASCII", "check for a stray line break or quote in the secret's source")
	}
}

func (v *validator) enum(s string, choices []string, key string) {
	if slices.Contains(choices, s) {
		return
	}
	do := "choose one of these"
	if near := Nearest(s, choices); near != "" {
		do = "did you mean " + near + "?"
	}
	v.add(ruleEnum, key, quote(s)+" is not one of "+strings.Join(choices, ", "), do)
}

// listen checks the address, and that nobody is served unasked.
func (v *validator) listen() {
	host, err := listenHost(v.c.Listen)
	if err != nil {
		what, do := split(err)
		v.add(ruleListen, "listen", quote(v.c.Listen)+" "+what, do)
		return
	}
	if len(v.c.Auth.Tokens) > 0 || v.c.Auth.OAuth.Enabled {
		return
	}
	const how = `make one with "openssl rand -hex 32" and list it under auth.tokens with a name and a gitea_token, or set up auth.oauth`
	if loopback(host) {
		v.add(ruleAnonymous, "auth.tokens", "lists no token, and Aegis serves nobody without one, not even on loopback", how)
		return
	}
	v.add(ruleAnonymous, "auth.tokens", "lists no token while listen is open to the network; Aegis serves nobody without one", how)
}

// listenHost returns the host of a listen address, "" for all interfaces.
func listenHost(listen string) (string, error) {
	const example = "write host:port, such as 127.0.0.1:8080, [::1]:8080 or :8080 for all interfaces"
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", &valueError{"is not host:port", example}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || !isDigits(port) || n > 65535 {
		return "", &valueError{"has no port from 0 to 65535", example}
	}
	if host != "" && !validHost(host) {
		return "", &valueError{"has no valid host", example}
	}
	return host, nil
}

func (v *validator) urls() {
	if u := v.c.Gitea.URL; u != nil && strings.Contains(u.Path+"/", "/api/v1/") {
		v.add(ruleAPIPath, "gitea.url", "ends in /api/v1", "write the address that a browser uses; Aegis adds /api/v1")
	}
	if u := v.c.PublicURL; u != nil && u.Scheme == "http" && !u.Loopback() {
		v.add(rulePublicURL, "public_url", "is http on a host that is not loopback; tokens would cross the network readable", "write https, and put TLS in front of Aegis")
	}
}

func (v *validator) tokens() {
	names, values := map[string]int{}, map[string]int{}
	for i, t := range v.c.Auth.Tokens {
		key := fmt.Sprintf("auth.tokens[%d]", i)
		if j, twice := firstUse(names, t.Name, i); twice {
			v.add(ruleTokenTwice, key+".name", fmt.Sprintf("is also the name of auth.tokens[%d]", j), "give each token its own name")
		}
		if j, twice := firstUse(values, t.Token.Reveal(), i); twice {
			v.add(ruleTokenTwice, key+".token", fmt.Sprintf("is also the token of auth.tokens[%d]", j), "give each identity its own token")
		}
	}
}

// firstUse notes that item i uses s, and reports the item that did before.
// Empty texts are nobody's.
func firstUse(seen map[string]int, s string, i int) (first int, twice bool) {
	if s == "" {
		return 0, false
	}
	if first, twice = seen[s]; !twice {
		seen[s] = i
	}
	return first, twice
}

func (v *validator) masking(m Masking, section string) {
	names := map[string]int{}
	for i, r := range m.Rules {
		key := fmt.Sprintf("%s.rules[%d]", section, i)
		if j, twice := firstUse(names, r.Name, i); twice {
			v.add(ruleMaskTwice, key+".name", fmt.Sprintf("is also the name of %s.rules[%d]", section, j), "give each rule its own name")
		}
		if r.Regex != nil && r.Regex.Regexp != nil && matchesEmpty(r.Regex.Regexp) {
			v.add(ruleMaskEmpty, key+".regex", "matches the empty text, which is everywhere", "require at least one character, for example with + instead of *")
		}
		v.replacement(r, m.Mode, key)
	}
}

// replacement refuses a replacement that would never take anything's place.
func (v *validator) replacement(r MaskRule, mode, key string) {
	switch {
	case r.Replacement == nil:
	case r.Action == "block" || r.Action == "report":
		v.add(ruleMaskReplacement, key+".replacement", "has no effect with action "+r.Action, "remove it, or set action: mask")
	case r.Action == "" && (mode == "block" || mode == "report"):
		v.add(ruleMaskReplacement, key+".replacement", "has no effect with masking.mode "+mode, "remove it, or set action: mask on this rule")
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

func (v *validator) results(r Results, section string) {
	defaults := r.FieldsDefault
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		fields := defaults[name]
		key := join(section+".fields_default", name)
		if !toolName.MatchString(name) {
			v.add(ruleFieldsDefault, key, "is not a tool's name", "write a name such as gitea_issue_list")
		}
		if n := len(fields); n == 0 || n > 100 {
			v.add(ruleFieldsDefault, key, "must list 1 to 100 fields", "write a list such as [number, title, user.login], or remove the tool")
		}
	}
}

func (v *validator) server() {
	for i, h := range v.c.Server.AllowedHosts {
		bare := strings.TrimSuffix(strings.TrimPrefix(h, "["), "]")
		if _, err := netip.ParseAddr(bare); err != nil && bare != h || !validHost(bare) {
			v.add(ruleHost, fmt.Sprintf("server.allowed_hosts[%d]", i), quote(h)+" is not a host name or IP address", "write the name alone, without scheme, port, path or wildcard")
		}
	}
	for i, o := range v.c.Server.AllowedOrigins {
		if !validOrigin(o) {
			v.add(ruleOrigin, fmt.Sprintf("server.allowed_origins[%d]", i), quote(o)+" is not an origin", "write scheme://host or scheme://host:port, without path, user or wildcard")
		}
	}
}

// validOrigin accepts tuple origins (RFC 6454) of any scheme, as editors have
// schemes of their own. "null" is no origin to trust.
func validOrigin(o string) bool {
	u, err := url.Parse(o)
	return err == nil && u.Scheme != "" && u.Scheme+"://"+u.Host == strings.ToLower(u.Scheme)+o[len(u.Scheme):] &&
		validHost(u.Hostname()) && validPort(u)
}

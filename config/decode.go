package config

import (
	"encoding"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// decoder puts a YAML tree into a Config. The library's own decoder is not
// used: it gives no columns, stops at the first problem of a custom type, names
// Go types and repeats values.
type decoder struct {
	env      Env
	source   *source
	problems Problems
	config   *Config  // what is being read; teams begin as copies of it
	unread   []string // keys that could not be read; Validate has nothing to say of them
	nodes    int      // values that may still be read
	fatal    bool     // the rest of the file has not been read
	more     bool     // there were too many problems to keep
}

// add adds a problem of what is at key, whose value is then not read.
func (d *decoder) add(at place, key, what, do string) {
	d.addKey(at, key, what, do)
	d.unread = append(d.unread, key)
}

// addKey adds a problem of how a key is written. Other keys of the section may be right, so
// Validate goes on to look at them.
func (d *decoder) addKey(at place, key, what, do string) {
	if len(d.problems) >= maxProblems {
		d.fatal, d.more = true, true
		return
	}
	d.problems = append(d.problems, d.source.problem(at, key, what, do))
}

// stop adds a problem of the whole file after which nothing else can be said.
func (d *decoder) stop(at place, what, do string) {
	if !d.fatal {
		d.add(at, "", what, do)
	}
	d.fatal = true
}

// field is a place in the configuration: its key and what its tags say.
type field struct {
	key     string
	quiet   bool // do not quote what the file says here
	literal bool // "${" is ordinary text here
}

func (f field) below(name string) field {
	f.key = join(f.key, name)
	return f
}

func (f field) item(i int) field {
	f.key = item(f.key, i)
	return f
}

// item returns the path of a list's item.
func item(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// join appends a key to a path. Keys that would be hard to tell from path
// syntax are quoted: results.fields_default["gitea.issue.list"].
func join(path, key string) string {
	switch {
	case !plainKey.MatchString(key) || len(key) > 100:
		return path + "[" + quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// root decodes the file's root mapping.
func (d *decoder) root(n *yaml.Node, c *Config) {
	if depth(n, 0) > maxDepth {
		d.stop(at(n), "has more than 32 levels", "remove the innermost ones; no key is that deep")
		return
	}
	switch {
	case n.Kind == yaml.MappingNode:
		d.config = c
		d.value(teamsLast(n), reflect.ValueOf(c).Elem(), field{})
	case n.Tag != "!!null": // a file of comments is an empty configuration
		d.stop(at(n), "must be a section of keys", "write keys such as gitea: and auth: at the start of lines")
	}
}

// depth returns how deep n is, and stops counting beyond the bound. Aliases
// are leaves: what they mean is counted where it is written.
func depth(n *yaml.Node, from int) int {
	deepest := from
	if from > maxDepth {
		return from
	}
	for _, c := range n.Content {
		deepest = max(deepest, depth(c, from+1))
	}
	return deepest
}

func at(n *yaml.Node) place { return place{max(n.Line, 1), max(n.Column, 1)} }

// value decodes n into v. Problems are added; v then keeps what it had.
func (d *decoder) value(n *yaml.Node, v reflect.Value, f field) {
	where := at(n)
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if d.nodes--; d.nodes < 0 {
		d.stop(where, "holds more than 100000 values", "remove the aliases that repeat long lists")
	}
	switch {
	case d.fatal:
	case n.Style&yaml.TaggedStyle != 0: // it would change how a value is read, and no key needs one
		d.add(where, f.key, "has a YAML tag (!…)", "remove the tag; quote the value if it begins with !")
	case v.Type() == reflect.TypeFor[Secret]():
		d.secret(n, v, f)
	case isText(v):
		d.text(n, v, f)
	case v.Kind() == reflect.Struct:
		d.section(n, v, f)
	case v.Kind() == reflect.Map:
		d.table(n, v, f)
	case v.Kind() == reflect.Slice:
		d.list(n, v, f)
	default:
		d.scalar(n, v, f)
	}
}

func isText(v reflect.Value) bool {
	t := v.Type()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// section decodes a mapping into a struct.
func (d *decoder) section(n *yaml.Node, v reflect.Value, f field) {
	fields := keysOf(v.Type())
	d.pairs(n, f, func(key string, kn, vn *yaml.Node) {
		i := slices.IndexFunc(fields, func(t reflect.StructField) bool { return t.Tag.Get("yaml") == key })
		if i < 0 {
			d.unknown(kn, key, fields, f)
			return
		}
		sub := f.below(key)
		sub.quiet = f.quiet || fields[i].Tag.Get("quiet") != ""
		sub.literal = fields[i].Tag.Get("literal") != ""
		d.mark(sub.key, kn, vn)
		d.value(vn, v.FieldByIndex(fields[i].Index), sub)
	})
}

// mark remembers where key is: at its value when that is written beside
// it, else at the key itself.
func (d *decoder) mark(key string, kn, vn *yaml.Node) {
	p := at(vn)
	if vn.Kind != yaml.ScalarNode && vn.Kind != yaml.AliasNode || vn.Tag == "!!null" || p.line < kn.Line {
		p = at(kn)
	}
	d.source.at[key] = p
}

// keysOf returns the fields of a struct that are keys of the file.
func keysOf(t reflect.Type) []reflect.StructField {
	var keys []reflect.StructField
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("yaml") != "" {
			keys = append(keys, f)
		}
	}
	return keys
}

// pairs calls each for the keys of a mapping, in order, and refuses what is no
// plain key. It reports false for what is no mapping.
func (d *decoder) pairs(n *yaml.Node, f field, each func(key string, kn, vn *yaml.Node)) bool {
	if n.Kind != yaml.MappingNode {
		if n.Tag != "!!null" { // all keys are commented out
			d.wrongType(n, f, "a section of keys", "write its keys below it, indented, as key: value")
		}
		return false
	}
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && !d.fatal; i += 2 {
		kn, vn := n.Content[i], n.Content[i+1]
		switch {
		case kn.Tag == "!!merge":
			d.addKey(at(kn), f.key, "merge keys (<<) are not supported",
				"write the keys out; an alias may stand for a whole value")
			continue
		case kn.Kind != yaml.ScalarNode || kn.Tag != "!!str":
			d.add(at(kn), f.key, "a key is not plain text", "write key: value, and quote keys that look like numbers")
			continue
		case kn.Style&yaml.TaggedStyle != 0:
			d.add(at(kn), f.key, "a key has a YAML tag (!…)", "remove the tag")
			continue
		}
		if line, twice := seen[kn.Value]; twice {
			key := f.key
			if _, known := d.source.at[join(f.key, kn.Value)]; known {
				key = join(f.key, kn.Value)
			}
			d.addKey(at(kn), key, fmt.Sprintf("the key is set twice, first on line %d", line), "keep one of them")
			continue
		}
		seen[kn.Value] = kn.Line
		each(kn.Value, kn, vn)
	}
	return true
}

var wordlike = regexp.MustCompile(`^[A-Za-z_-]{1,32}$`)

// unknown reports a key that the section does not have. The key is repeated
// only where it cannot be a secret in the wrong place.
func (d *decoder) unknown(kn *yaml.Node, key string, fields []reflect.StructField, f field) {
	names := make([]string, len(fields))
	for i, t := range fields {
		names[i] = t.Tag.Get("yaml")
	}
	near := Nearest(key, names)
	path := f.key
	if near != "" || wordlike.MatchString(key) && !f.quiet {
		path = join(f.key, key)
	}
	do := "the keys here are " + strings.Join(names, ", ")
	if near != "" {
		d.unread = append(d.unread, join(f.key, near))
	} else if !f.quiet {
		near = elsewhere(key)
	}
	if near != "" {
		do = "did you mean " + near + "?"
	}
	d.addKey(at(kn), path, "unknown key", do)
}

// elsewhere returns the path of the one key of the whole file that is called
// name, "" when there is none or more than one.
func elsewhere(name string) string {
	var found []string
	var walk func(t reflect.Type, path string)
	walk = func(t reflect.Type, path string) {
		for _, f := range keysOf(t) {
			key := f.Tag.Get("yaml")
			if key == name {
				found = append(found, join(path, key))
			}
			if f.Type.Kind() == reflect.Struct && !isText(reflect.New(f.Type).Elem()) {
				walk(f.Type, join(path, key))
			}
		}
	}
	walk(reflect.TypeFor[Config](), "")
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// list decodes a sequence into a slice, replacing what was there.
func (d *decoder) list(n *yaml.Node, v reflect.Value, f field) {
	if n.Kind != yaml.SequenceNode {
		if n.Tag != "!!null" {
			d.wrongType(n, f, "a list", "write [a, b], or one item per line after a dash")
		}
		return
	}
	out := reflect.MakeSlice(v.Type(), min(len(n.Content), d.nodes+1), min(len(n.Content), d.nodes+1))
	for i, item := range n.Content {
		if i >= out.Len() || d.fatal {
			d.nodes = 0
			d.value(item, reflect.New(v.Type().Elem()).Elem(), f.item(i))
			return
		}
		sub := f.item(i)
		d.source.at[sub.key] = at(item)
		d.value(item, out.Index(i), sub)
	}
	v.Set(out)
}

// table decodes a mapping of free keys into a map, replacing what was there.
func (d *decoder) table(n *yaml.Node, v reflect.Value, f field) {
	out := reflect.MakeMap(v.Type())
	read := d.pairs(n, f, func(key string, kn, vn *yaml.Node) {
		sub := f.below(key)
		d.mark(sub.key, kn, vn)
		elem := reflect.New(v.Type().Elem()).Elem()
		if elem.Type() == reflect.TypeFor[Team]() {
			elem.Set(reflect.ValueOf(inherit(d.config)))
		}
		d.value(vn, elem, sub)
		out.SetMapIndex(reflect.ValueOf(key), elem)
	})
	if read {
		v.Set(out)
	}
}

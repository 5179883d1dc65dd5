package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a catalog file.
const (
	// MaxBytes is the size of the largest catalog that [Parse] reads.
	MaxBytes = 32 << 20
	// MaxOperations and MaxParams bound the number of tools and of arguments
	// of one.
	MaxOperations = 5000
	MaxParams     = 200
	// MaxName is the length of the longest wire name.
	MaxName = 45
	// MaxAliases is the number of aliases of one operation, MaxAlias the length
	// of the longest in characters.
	MaxAliases = 60
	MaxAlias   = 50
)

var (
	namePattern    = regexp.MustCompile(`^gitea_[a-z]+_[a-z0-9]+(_[a-z0-9]+)*$`)
	argPattern     = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	versionPattern = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)
	pathPattern    = regexp.MustCompile(`^(/[A-Za-z0-9_.{}-]+)+$`)
	placeholder    = regexp.MustCompile(`\{([^{}]*)\}`)
)

// Reserved reports whether an argument name is Aegis's own, so that no
// operation may use it.
func Reserved(name string) bool {
	return slices.Contains([]string{"cursor", "fields", "sudo", "token", "access_token"}, name)
}

// Steers reports whether a query key of this name, in any letter case, would
// choose who the request runs as. None is ever sent.
func Steers(key string) bool {
	return slices.Contains([]string{"sudo", "token", "access_token"}, strings.ToLower(key))
}

// Parse reads a catalog and checks everything that its users rely on. A
// catalog that it returns has unique, well-formed tool names and arguments,
// complete path templates and schemas that are JSON objects.
func Parse(data []byte) (*Catalog, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("the catalog has %d bytes; at most %d are read", len(data), MaxBytes)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	c := new(Catalog)
	if err := dec.Decode(c); err != nil {
		return nil, fmt.Errorf("the catalog is not what \"aegis catalog build\" writes: %w", err)
	}
	if _, err := dec.Token(); err == nil || dec.InputOffset() < int64(len(bytes.TrimRight(data, " \r\n\t"))) {
		return nil, errors.New("the catalog has text after its end")
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, nil
}

// check returns the first thing in c that is not as documented.
func (c *Catalog) check() error {
	if !versionPattern.MatchString(c.Version) {
		return errors.New("the catalog's version is not a semantic version")
	}
	if len(c.Operations) == 0 || len(c.Operations) > MaxOperations {
		return fmt.Errorf("the catalog has %d operations; 1 to %d are possible", len(c.Operations), MaxOperations)
	}
	for name, s := range c.Arguments {
		if !isObject(s) || bytes.Contains(s, []byte(`"$ref"`)) {
			return fmt.Errorf("the shared argument %q has no schema of its own", name)
		}
	}
	for name, s := range c.Definitions {
		if !isObject(s) || !plainRefs(s) {
			return fmt.Errorf("the definition %q is no schema as the generator writes it", name)
		}
	}
	names, ids := make(map[string]bool, len(c.Operations)), make(map[string]bool, len(c.Operations))
	for i := range c.Operations {
		o := &c.Operations[i]
		if names[o.Name] {
			return fmt.Errorf("two operations are called %q", o.Name)
		}
		names[o.Name] = true
		if o.ID != "" && ids[o.ID] { // rules of policy go by it
			return fmt.Errorf("two operations have the id %q", o.ID)
		}
		ids[o.ID] = true
		if err := c.checkOperation(o); err != nil {
			return fmt.Errorf("operation %q: %w", o.Name, err)
		}
	}
	for i := range c.Operations {
		if r := c.Operations[i].ReplacedBy; r != "" && !names[r] {
			return fmt.Errorf("operation %q is replaced by %q, which does not exist", c.Operations[i].Name, r)
		}
	}
	if !slices.IsSortedFunc(c.Operations, func(a, b Operation) int { return strings.Compare(a.Name, b.Name) }) {
		return errors.New("the operations are not sorted by name")
	}
	return nil
}

// checkOperation returns the first thing in an operation that is not as documented.
func (c *Catalog) checkOperation(o *Operation) error {
	switch {
	case len(o.Name) > MaxName || !namePattern.MatchString(o.Name):
		return fmt.Errorf("a tool name is gitea_<domain>_<action> in lower case, at most %d characters", MaxName)
	case !slices.Contains(Domains(), o.Domain) || !strings.HasPrefix(o.Name, "gitea_"+o.Domain+"_"):
		return errors.New("the domain is unknown or not the one in the name")
	case !versionPattern.MatchString(o.Version):
		return errors.New("the version is not a semantic version")
	case !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, o.Method):
		return errors.New("the method is not GET, POST, PUT, PATCH or DELETE")
	case !pathPattern.MatchString(o.Path) || strings.Contains(o.Path, ".."):
		return errors.New("the path is not a template below the API's base path")
	case len(o.Risk) != 2 || o.Risk[0] != 'R' || o.Risk[1] < '0' || o.Risk[1] > '4':
		return errors.New("the risk is not R0 to R4")
	case o.ReadOnly && o.Destructive:
		return errors.New("a reading operation cannot be destructive")
	case !slices.Contains([]string{"", "page", "per_page", "ignored"}, o.Paging):
		return errors.New("the paging is unknown")
	case o.TimeoutSeconds < 0 || o.TimeoutSeconds > 3600:
		return errors.New("the timeout is not 0 to 3600 seconds")
	case len(o.Output) != 0 && (!isObject(o.Output) || !plainRefs(o.Output)):
		return errors.New("the output is no schema as the generator writes it")
	case len(o.Example) != 0 && !isObject(o.Example):
		return errors.New("the example is no object")
	case len(o.Aliases) > MaxAliases,
		slices.ContainsFunc(o.Aliases, func(a string) bool { return utf8.RuneCountInString(a) > MaxAlias }):
		return errors.New("there are too many aliases, or a long one")
	}
	return c.checkParams(o)
}

// checkParams does so for its arguments, which must fill the path exactly.
func (c *Catalog) checkParams(o *Operation) error {
	if len(o.Params) > MaxParams {
		return fmt.Errorf("%d arguments are more than %d", len(o.Params), MaxParams)
	}
	seen, path := map[string]bool{}, map[string]bool{}
	for i := range o.Params {
		p := &o.Params[i]
		switch {
		case !argPattern.MatchString(p.Name) || Reserved(p.Name) || seen[p.Name]:
			return fmt.Errorf("the argument name %q is malformed, reserved or taken", p.Name)
		case !slices.Contains([]string{"path", "query", "body", "whole", "form", "file"}, p.In):
			return fmt.Errorf("the argument %q goes to an unknown place", p.Name)
		case p.In == "path" && !p.Required, p.Wildcard && p.In != "path", p.Encode != "" && p.Encode != "base64":
			return fmt.Errorf("the argument %q cannot be what it says", p.Name)
		case p.In == "query" && Steers(p.WireName()):
			return fmt.Errorf("the argument %q would carry a credential in the query", p.Name)
		case !isObject(c.Schema(p)), bytes.Contains(p.Schema, []byte(`"$ref"`)):
			return fmt.Errorf("the argument %q has no schema", p.Name)
		}
		seen[p.Name] = true
		if p.In == "path" {
			path[p.WireName()] = true
		}
	}
	for _, m := range placeholder.FindAllStringSubmatch(o.Path, -1) {
		if !path[m[1]] {
			return fmt.Errorf("the path needs an argument for {%s}", m[1])
		}
		delete(path, m[1])
	}
	if len(path) != 0 {
		return errors.New("an argument is not in the path that it should fill")
	}
	return nil
}

// isObject reports whether raw, which is valid JSON or empty, is an object.
func isObject(raw json.RawMessage) bool { return len(raw) != 0 && raw[0] == '{' }

// plainRefs reports whether every reference in raw has the form that
// [Expander] knows: {"$ref":"Name"} and nothing else in that object.
func plainRefs(raw json.RawMessage) bool {
	found := 0
	for rest := []byte(raw); ; found++ {
		i := bytes.Index(rest, refStart)
		if i < 0 {
			break
		}
		rest = rest[i+len(refStart):]
		end := bytes.IndexByte(rest, '"')
		if end < 1 || !argPattern.Match(rest[:end]) || !bytes.HasPrefix(rest[end:], []byte(`"}`)) {
			return false
		}
	}
	return bytes.Count(raw, []byte(`"$ref"`)) == found
}

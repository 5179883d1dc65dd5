package config

import (
	"bytes"
	_ "embed"
	"encoding"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Default returns the configuration of an empty file. It does not pass
// Validate: gitea.url and auth.tokens have no default.
func Default() *Config {
	return &Config{
		Listen:  "127.0.0.1:8080",
		DataDir: "data",
		TLS:     defaultTLS(),
		Gitea: Gitea{
			Timeout:          Duration(30 * time.Second),
			MaxConnections:   128,
			MaxResponseBytes: 32 << 20,
		},
		Auth:  Auth{OAuth: defaultOAuth()},
		Store: defaultStore(),
		Tools: Tools{
			Mode:     "full",
			MaxRisk:  "R4",
			Raw:      true,
			PageSize: 1000,
			ListTTL:  Duration(5 * time.Minute),
		},
		Results: Results{
			MaxItems:       100,
			MaxChars:       60_000,
			MaxBinaryBytes: 4 << 20,
			Sanitize:       "remove",
		},
		Masking: Masking{Mode: "mask", Input: "off", Builtin: true},
		Policy:  Policy{Confirm: Confirm{Fallback: "deny", TTL: Duration(5 * time.Minute)}},
		Audit: Audit{
			Sync:               "always",
			Interval:           Duration(time.Second),
			RotateSize:         64 << 20,
			RotateAge:          Duration(24 * time.Hour),
			CheckpointRecords:  1000,
			CheckpointInterval: Duration(time.Minute),
		},
		Limits: Limits{
			Address:        Limit{Rate: Rate{Count: 200, Per: time.Second}, Burst: 1000},
			Identity:       Limit{Rate: Rate{Count: 100, Per: time.Second}, Burst: 500},
			Concurrency:    Concurrency{Identity: 64, Total: 512},
			MaxKeys:        65536,
			OnStoreFailure: "local",
		},
		Server: Server{
			ClientHeader:             "X-Forwarded-For",
			MaxConnections:           4096,
			MaxConnectionsPerAddress: 256,
			MaxHeaderBytes:           64 << 10,
			MaxHeaders:               100,
			MinBodyRate:              1 << 10,
			MaxBodyBytes:             8 << 20,
			ReadTimeout:              Duration(time.Minute),
			IdleTimeout:              Duration(2 * time.Minute),
			ShutdownTimeout:          Duration(30 * time.Second),
		},
		Tracing: Tracing{Sample: 1},
		Log:     Log{Level: "info", Format: "auto"},
	}
}

// fill gives what was read its one spelling, and is the place for defaults of
// list items, which Default cannot hold. It writes no memory that env.Base
// shares.
func fill(c *Config, env Env) {
	c.leaves(func(x reflect.Value, f reflect.StructField, key string) {
		if f.Tag.Get("file") != "" && !(key == "audit.path" && c.AuditOff()) {
			x.SetString(env.path(x.String()))
		}
	})
	c.TLS.Hosts = mapped(c.TLS.Hosts, foldHost)
	c.Server.AllowedHosts = mapped(c.Server.AllowedHosts, foldHost)
	c.Server.AllowedOrigins = mapped(c.Server.AllowedOrigins, strings.ToLower)
}

func mapped(list []string, f func(string) string) []string {
	list = slices.Clone(list)
	for i, s := range list {
		list[i] = f(s)
	}
	return list
}

// foldHost returns the spelling of a host that Host headers are compared with:
// lower case, no trailing dot, IP addresses in canonical form without brackets.
func foldHost(h string) string {
	h = strings.TrimSuffix(strings.ToLower(h), ".")
	if a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(h, "["), "]")); err == nil {
		return a.String()
	}
	return h
}

// Effective returns the configuration as YAML, every key in the order of the
// structs, with secrets hidden. Apart from those it can be loaded again.
func Effective(c *Config) ([]byte, error) { return effective(reflect.ValueOf(c).Elem()) }

// EffectiveTeam returns the rules of one team as YAML, with what it takes from
// the top of the file and secrets hidden. The error says which teams there are when there
// is none of this name.
func EffectiveTeam(c *Config, name string) ([]byte, error) {
	t, ok := c.Teams[name]
	switch {
	case !ok && len(c.Teams) == 0:
		return nil, fmt.Errorf("the configuration has no teams")
	case !ok:
		names := strings.Join(slices.Sorted(maps.Keys(c.Teams)), ", ")
		return nil, fmt.Errorf("no team is called %s; there are %s", quote(name), names)
	}
	return effective(reflect.ValueOf(t))
}

func effective(v reflect.Value) ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(render(v)); err != nil {
		return nil, fmt.Errorf("cannot write the configuration as YAML: %w", err)
	}
	return out.Bytes(), nil
}

// render returns v as a YAML node, nil for an absent optional text. The library's own
// encoder is not used: it orders keys of maps otherwise, quotes words such as off, and has
// null for what is empty.
func render(v reflect.Value) *yaml.Node {
	switch {
	case v.Type() == reflect.TypeFor[Secret]() && !v.IsZero():
		return text(hidden)
	case v.Type() == reflect.TypeFor[Secret](), v.Kind() == reflect.Pointer && v.IsNil() && isText(v):
		return text("")
	case isText(v):
		b, _ := v.Interface().(encoding.TextMarshaler).MarshalText() // ours have no error
		n := text(string(b))
		if v.Type() == reflect.TypeFor[ByteSize]() {
			n.Tag = "" // digits alone are a number, and have no quotes
		}
		return n
	}
	n := &yaml.Node{}
	switch v.Kind() {
	case reflect.Struct:
		n.Kind = yaml.MappingNode
		for _, f := range keysOf(v.Type()) {
			appendPair(n, f.Tag.Get("yaml"), v.FieldByIndex(f.Index))
		}
		return n
	case reflect.Map:
		n.Kind = yaml.MappingNode
		for _, k := range sortedKeys(v) {
			appendPair(n, k.String(), v.MapIndex(k))
		}
	case reflect.Slice:
		n.Kind = yaml.SequenceNode
		for i := range v.Len() {
			n.Content = append(n.Content, render(v.Index(i)))
		}
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return render(v.Elem())
	case reflect.String:
		return text(v.String())
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v.Interface())}
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle // [] or {}, where a block would show null
	}
	return n
}

// appendPair adds a key to a mapping, unless its value is absent.
func appendPair(n *yaml.Node, key string, v reflect.Value) {
	if value := render(v); value != nil {
		n.Content = append(n.Content, text(key), value)
	}
}

func sortedKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// text returns a string node; the encoder quotes it where it must.
func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if s == "" {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

//go:embed aegis.schema.json
var schema string

// Schema returns the JSON Schema (2020-12, with keywords that draft-07 tools
// know too) of the configuration file, for editors.
func Schema() []byte { return []byte(schema) }

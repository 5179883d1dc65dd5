package build

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"aegis/spec"
)

// inputs are the hand-made YAML files.
type inputs struct {
	names       map[string]nameEntry
	scopes      []scopeRule
	corrections corrections
	common      map[string]argDoc
	docs        map[string]opDoc
	aliases     map[string][]string
}

// nameEntry is one line of names.yaml.
type nameEntry struct {
	Name              string        `yaml:"name"`
	Risk              string        `yaml:"risk"`
	ReadOnly          *bool         `yaml:"read_only"`
	Destructive       *bool         `yaml:"destructive"`
	Idempotent        *bool         `yaml:"idempotent"`
	OpenWorld         bool          `yaml:"open_world"`
	CredentialIssuing bool          `yaml:"credential_issuing"`
	BasicAuthOnly     bool          `yaml:"basic_auth_only"`
	ReplacedBy        string        `yaml:"replaced_by"`
	Timeout           time.Duration `yaml:"timeout"`
}

// corrections is corrections.yaml.
type corrections struct {
	Wildcards []struct {
		Path   string   `yaml:"path"`
		Params []string `yaml:"params"`
	} `yaml:"wildcards"`
	Numbers struct {
		Params []string `yaml:"params"`
		Except []string `yaml:"except"`
	} `yaml:"numbers"`
	Operations map[string]correction `yaml:"operations"`
	Nullable   map[string][]string   `yaml:"nullable"`
}

// correction is one operation's entry in corrections.yaml.
type correction struct {
	Reason   string            `yaml:"reason"`
	Rename   map[string]string `yaml:"rename"`
	Args     map[string]argFix `yaml:"args"`
	Produces string            `yaml:"produces"`
	// Text names, for body properties that hold base64 (parent.child when
	// nested), the argument that takes plain text instead.
	Text map[string]string `yaml:"text"`
	// Add are arguments that the server takes though the description lacks them.
	Add []addition `yaml:"add"`
	// Output is none, any, object, text, binary, registration_token, one_or_many
	// (the described result or a list of it) or with_nulls (a list in which
	// single items can be null).
	Output string `yaml:"output"`
	// Paging is none, page, per_page or ignored.
	Paging string `yaml:"paging"`
}

// addition is one argument that a description lacks. Its words and bounds come
// from descriptions/ and args like everyone's.
type addition struct {
	Name     string `yaml:"name"`
	In       string `yaml:"in"`   // query or body
	Type     string `yaml:"type"` // string, integer or boolean
	Required bool   `yaml:"required"`
}

// argFix corrects what the description says of one argument.
type argFix struct {
	Type      string   `yaml:"type"`
	Items     string   `yaml:"items"`
	Enum      []string `yaml:"enum"`
	Default   any      `yaml:"default"`
	NoDefault bool     `yaml:"no_default"`
	Required  *bool    `yaml:"required"`
	Minimum   *int64   `yaml:"minimum"`
	Maximum   *int64   `yaml:"maximum"`
	MinLength int      `yaml:"min_length"`
	MaxLength int      `yaml:"max_length"`
	MinItems  int      `yaml:"min_items"`
	Pattern   string   `yaml:"pattern"`
}

// opDoc is one operation's entry in descriptions/*.yaml.
type opDoc struct {
	Title       string            `yaml:"title"`
	Description string            `yaml:"description"`
	Args        map[string]argDoc `yaml:"args"`
	Example     map[string]any    `yaml:"example"`
	Slim        []string          `yaml:"slim"`
}

// argDoc describes one argument: a bare sentence, or a mapping with constraints.
type argDoc struct {
	Description string   `yaml:"description"`
	Enum        []string `yaml:"enum"`
	Default     any      `yaml:"default"`
	Minimum     *int64   `yaml:"minimum"`
	Maximum     *int64   `yaml:"maximum"`
	Pattern     string   `yaml:"pattern"`
	MaxLength   int      `yaml:"max_length"`
	Format      string   `yaml:"format"`
}

// UnmarshalYAML accepts the bare sentence. The function form keeps the
// decoder's strictness, which a node would lose.
func (d *argDoc) UnmarshalYAML(unmarshal func(any) error) error {
	if err := unmarshal(&d.Description); err == nil {
		return nil
	}
	type plain argDoc
	return unmarshal((*plain)(d))
}

// loadInputs reads every file and checks that they fit together.
func loadInputs(files fs.FS) (*inputs, error) {
	in := &inputs{docs: map[string]opDoc{}}
	var names struct {
		Operations map[string]nameEntry `yaml:"operations"`
	}
	var scopes struct {
		Rules []scopeRule `yaml:"rules"`
	}
	err := errors.Join(
		readYAML(files, "names.yaml", &names),
		readYAML(files, "scopes.yaml", &scopes),
		readYAML(files, "corrections.yaml", &in.corrections),
		in.readDocs(files),
	)
	in.names, in.scopes = names.Operations, scopes.Rules
	if err != nil {
		return nil, err
	}
	return in, in.check()
}

func (in *inputs) readDocs(files fs.FS) error {
	paths, err := fs.Glob(files, "descriptions/*.yaml")
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range paths {
		if path.Base(p) == "common.yaml" {
			var common struct {
				Arguments map[string]argDoc `yaml:"arguments"`
			}
			errs = append(errs, readYAML(files, p, &common))
			in.common = common.Arguments
			continue
		}
		if path.Base(p) == "aliases.yaml" {
			errs = append(errs, readYAML(files, p, &in.aliases))
			continue
		}
		docs := map[string]opDoc{}
		errs = append(errs, readYAML(files, p, &docs))
		for _, id := range sortedKeys(docs) {
			if _, twice := in.docs[id]; twice {
				errs = append(errs, fmt.Errorf("%s: %s has an entry in another file too", p, id))
			}
			in.docs[id] = docs[id]
		}
	}
	return errors.Join(errs...)
}

// check finds entries that would be without effect.
func (in *inputs) check() error {
	var errs []error
	tools := map[string]string{}
	for _, id := range sortedKeys(in.names) {
		n := in.names[id]
		if other, taken := tools[n.Name]; taken {
			errs = append(errs, fmt.Errorf("names.yaml: %s and %s are both called %q", other, id, n.Name))
		}
		tools[n.Name] = id
		if n.ReplacedBy != "" && in.names[n.ReplacedBy].Name == "" {
			errs = append(errs, fmt.Errorf("names.yaml: %s is replaced by the unknown %s", id, n.ReplacedBy))
		}
	}
	for _, id := range sortedKeys(in.docs) {
		if _, ok := in.names[id]; !ok {
			errs = append(errs, fmt.Errorf("descriptions: %s is no operation of names.yaml", id))
		}
	}
	errs = append(errs, in.checkAliases())
	for _, id := range sortedKeys(in.corrections.Operations) {
		c := in.corrections.Operations[id]
		if _, ok := in.names[id]; !ok || c.Reason == "" {
			errs = append(errs, fmt.Errorf("corrections.yaml: %s is unknown or gives no reason", id))
		}
		for _, a := range c.Add {
			if a.Name == "" || a.In != "query" && a.In != "body" || !slices.Contains([]string{"string", "integer", "boolean"}, a.Type) {
				errs = append(errs, fmt.Errorf("corrections.yaml: %s adds an argument without a name, place or type", id))
			}
		}
		if !slices.Contains([]string{"", "none", "any", "object", "text", "binary", "registration_token", "one_or_many", "with_nulls"}, c.Output) ||
			!slices.Contains([]string{"", "none", "page", "per_page", "ignored"}, c.Paging) {
			errs = append(errs, fmt.Errorf("corrections.yaml: %s has an unknown output or paging", id))
		}
	}
	return errors.Join(errs...)
}

// checkAliases finds aliases of nothing, of two operations, or too long.
func (in *inputs) checkAliases() error {
	var errs []error
	of := map[string]string{}
	for _, id := range sortedKeys(in.aliases) {
		if _, ok := in.names[id]; !ok {
			errs = append(errs, fmt.Errorf("aliases.yaml: %s is no operation of names.yaml", id))
		}
		if n := len(in.aliases[id]); n < 4 || n > spec.MaxAliases {
			errs = append(errs, fmt.Errorf("aliases.yaml: %s has %d aliases; 4 to %d are wanted", id, n, spec.MaxAliases))
		}
		for _, a := range in.aliases[id] {
			key := strings.ToLower(a)
			if other, twice := of[key]; twice {
				errs = append(errs, fmt.Errorf("aliases.yaml: %q stands for %s and %s", a, other, id))
			}
			of[key] = id
			if n := utf8.RuneCountInString(a); n < 3 || n > spec.MaxAlias {
				errs = append(errs, fmt.Errorf("aliases.yaml: %s: %q has %d characters; 3 to %d are wanted", id, a, n, spec.MaxAlias))
			}
		}
	}
	return errors.Join(errs...)
}

// reference replaces {operationId} in text with the operation's wire name.
func (in *inputs) reference(text string) (string, error) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "{")
		b.WriteString(before)
		if !ok {
			return b.String(), nil
		}
		id, after, closed := strings.Cut(rest, "}")
		n, known := in.names[id]
		if !closed || !known {
			return "", fmt.Errorf("{%s} is no operation of names.yaml", clean(id, 60))
		}
		b.WriteString("gitea_" + n.Name)
		text = after
	}
}

// readYAML decodes one document strictly.
func readYAML(files fs.FS, name string, out any) error {
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(out); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: a second document follows the first", name)
	}
	return nil
}

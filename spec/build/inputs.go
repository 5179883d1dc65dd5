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

// inputs are the hand-made YAML files. They hold what no description says: names that do
// not change when Gitea renames an operation, how much harm a call can do, words for
// models.
type inputs struct {
	// All but scopes and common are by operation id; common is by argument name.
	names       map[string]nameEntry
	scopes      []scopeRule
	corrections corrections
	common      map[string]argDoc
	docs        map[string]opDoc
	aliases     map[string][]string
}

// nameEntry is one line of names.yaml. Every operation of the pinned version has one: a
// risk class is a decision of a person, never a guess of the generator.
type nameEntry struct {
	// Name is the wire name without gitea_, Risk the class R0 to R4.
	Name string `yaml:"name"`
	Risk string `yaml:"risk"`
	// The annotations of MCP; nil: what the method says of them.
	ReadOnly    *bool `yaml:"read_only"`
	Destructive *bool `yaml:"destructive"`
	Idempotent  *bool `yaml:"idempotent"`
	// Marks; see [spec.Operation]. ReplacedBy is an operation id, Timeout what a call
	// may take.
	OpenWorld         bool          `yaml:"open_world"`
	CredentialIssuing bool          `yaml:"credential_issuing"`
	BasicAuthOnly     bool          `yaml:"basic_auth_only"`
	ReplacedBy        string        `yaml:"replaced_by"`
	Timeout           time.Duration `yaml:"timeout"`
}

// corrections is corrections.yaml.
type corrections struct {
	Wildcards []wildcard `yaml:"wildcards"`
	// Numbers are path parameters that are numbers, but in the operations of Except.
	Numbers struct {
		Params []string `yaml:"params"`
		Except []string `yaml:"except"`
	} `yaml:"numbers"`
	Operations map[string]correction `yaml:"operations"`
	// Nullable are members of definitions that can be null though the description does
	// not say so.
	Nullable map[string][]string `yaml:"nullable"`
}

// wildcard names path parameters that keep their slashes, as Gitea's router does.
type wildcard struct {
	Path   string   `yaml:"path"`
	Params []string `yaml:"params"`
}

// correction is one operation's entry in corrections.yaml. Each is a difference between the
// description and the server that was seen in practice; the reason says where, so that it
// can go when the description is put right.
type correction struct {
	// Reason is why the description is wrong; an entry without one is refused. Rename
	// gives arguments other names, by place and wire name, Args corrects them.
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
	// Type and Items replace the type, NoDefault drops a default that is not the
	// server's.
	Type      string `yaml:"type"`
	Items     string `yaml:"items"`
	NoDefault bool   `yaml:"no_default"`
	Required  *bool  `yaml:"required"`
	MinLength int    `yaml:"min_length"`
	MinItems  int    `yaml:"min_items"`
	limits    `yaml:",inline"`
}

// limits are the constraints that both corrections and descriptions may give.
type limits struct {
	Enum      []string `yaml:"enum"`
	Default   any      `yaml:"default"`
	Minimum   *int64   `yaml:"minimum"`
	Maximum   *int64   `yaml:"maximum"`
	Pattern   string   `yaml:"pattern"`
	MaxLength int      `yaml:"max_length"`
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
	Description string `yaml:"description"`
	Format      string `yaml:"format"`
	limits      `yaml:",inline"`
}

// UnmarshalYAML accepts the bare sentence. The function form keeps the
// decoder's strictness, which a node would lose.
func (d *argDoc) UnmarshalYAML(unmarshal func(any) error) error {
	// A mapping does not decode into a string, so the order of the two attempts does
	// not matter for the result, and this one is the usual.
	if err := unmarshal(&d.Description); err == nil {
		return nil
	}
	type plain argDoc
	return unmarshal((*plain)(d))
}

// loadInputs reads every file and checks that they fit together. All files are read before
// anything is refused: who edits several of them gets one list of mistakes.
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

// readDocs reads the folder of descriptions. How it is divided into files has no
// meaning, but for two with a form of their own.
func (in *inputs) readDocs(files fs.FS) error {
	paths, err := fs.Glob(files, "descriptions/*.yaml")
	if err != nil {
		return err
	}
	var found findings
	for _, p := range paths {
		switch path.Base(p) {
		case "common.yaml":
			var common struct {
				Arguments map[string]argDoc `yaml:"arguments"`
			}
			found = append(found, readYAML(files, p, &common))
			in.common = common.Arguments
			continue
		case "aliases.yaml":
			found = append(found, readYAML(files, p, &in.aliases))
			continue
		}
		docs := map[string]opDoc{}
		found = append(found, readYAML(files, p, &docs))
		for _, id := range sortedKeys(docs) {
			if _, twice := in.docs[id]; twice {
				found.add("%s: %s has an entry in another file too", p, id)
			}
			in.docs[id] = docs[id]
		}
	}
	return errors.Join(found...)
}

// findings gathers the mistakes in the hand-made files, so that one run reports all of them.
type findings []error

// add notes a mistake.
func (f *findings) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

// check finds entries that would be without effect.
func (in *inputs) check() error {
	var found findings
	tools := map[string]string{}
	for _, id := range sortedKeys(in.names) {
		n := in.names[id]
		if other, taken := tools[n.Name]; taken {
			found.add("names.yaml: %s and %s are both called %q", other, id, n.Name)
		}
		tools[n.Name] = id
		if n.ReplacedBy != "" && in.names[n.ReplacedBy].Name == "" {
			found.add("names.yaml: %s is replaced by the unknown %s", id, n.ReplacedBy)
		}
	}
	for _, id := range sortedKeys(in.docs) {
		if _, ok := in.names[id]; !ok {
			found.add("descriptions: %s is no operation of names.yaml", id)
		}
	}
	in.checkAliases(&found)
	for _, id := range sortedKeys(in.corrections.Operations) {
		c := in.corrections.Operations[id]
		if _, ok := in.names[id]; !ok || c.Reason == "" {
			found.add("corrections.yaml: %s is unknown or gives no reason", id)
		}
		for _, a := range c.Add {
			if a.Name == "" || !slices.Contains([]string{"query", "body"}, a.In) ||
				!slices.Contains([]string{"string", "integer", "boolean"}, a.Type) {
				found.add("corrections.yaml: %s adds an argument without a name, place or type", id)
			}
		}
		known := slices.Contains([]string{"", "none", "one_or_many", "with_nulls"}, c.Output)
		if !known && namedOutputs[c.Output] == nil ||
			!slices.Contains([]string{"", "none", "page", "per_page", "ignored"}, c.Paging) {
			found.add("corrections.yaml: %s has an unknown output or paging", id)
		}
	}
	return errors.Join(found...)
}

// checkAliases finds aliases of nothing, of two operations, or too long. The bounds are
// those of spec.Parse, but for the least number: fewer than four phrases leave the search
// to the words of the name.
func (in *inputs) checkAliases(found *findings) {
	of := map[string]string{}
	for _, id := range sortedKeys(in.aliases) {
		if _, ok := in.names[id]; !ok {
			found.add("aliases.yaml: %s is no operation of names.yaml", id)
		}
		if n := len(in.aliases[id]); n < 4 || n > spec.MaxAliases {
			found.add("aliases.yaml: %s has %d aliases; 4 to %d are wanted", id, n, spec.MaxAliases)
		}
		for _, a := range in.aliases[id] {
			key := strings.ToLower(a)
			// The search would find one of the two by chance.
			if other, twice := of[key]; twice {
				found.add("aliases.yaml: %q stands for %s and %s", a, other, id)
			}
			of[key] = id
			if n := utf8.RuneCountInString(a); n < 3 || n > spec.MaxAlias {
				found.add("aliases.yaml: %s: %q has %d characters; 3 to %d are wanted", id, a, n, spec.MaxAlias)
			}
		}
	}
}

// reference replaces {operationId} in text with the operation's wire name. Descriptions
// point to other tools by operation id, so that renaming a tool is one line in names.yaml
// and no text goes stale.
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

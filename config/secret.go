package config

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Secret is a value that cannot print itself. In the file it is a literal,
// ${NAME} for an environment variable, or file:/path for a file's content.
// The zero value is empty.
type Secret struct {
	_ [0]func() // == would compare addresses; use Equal
	// The value is behind a pointer so that a struct that keeps a Secret
	// in an unexported field prints an address, where fmt cannot call Format.
	value *string
}

// NewSecret returns the secret with this value.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{value: &value}
}

// Reveal returns the value. Call it where the value is used, not before.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s.value == nil }

// Equal reports whether both have the same value, in time that does not depend
// on where they differ.
func (s Secret) Equal(t Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(t.Reveal())) == 1
}

const hidden = "<secret>"

// String hides the value.
func (s Secret) String() string { return hidden }

// GoString hides the value from %#v.
func (s Secret) GoString() string { return hidden }

// Format hides the value from every verb of fmt, those for numbers included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// MarshalText hides the value from JSON, YAML and text encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the value from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// maxSecretFile bounds a file that a secret is read from.
const maxSecretFile = 64 << 10

var (
	variable     = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)
	bareVariable = regexp.MustCompile(`^\$[A-Z_][A-Z0-9_]*$`)
)

// resolved is a secret's value and where it came from.
type resolved struct {
	value   string
	literal bool // written in the configuration file itself
	open    bool // read from a file that everyone on the machine may read
}

// resolve turns the text of a secret field into the secret's value. Errors are
// *valueError; they name variables and files, never a value.
func (e Env) resolve(text string) (resolved, error) {
	if m := variable.FindStringSubmatch(text); m != nil {
		return e.variable(m[1])
	}
	if p, ok := strings.CutPrefix(text, "file:"); ok {
		return e.file(p)
	}
	if strings.Contains(text, "${") {
		return resolved{}, &valueError{
			"mixes ${…} with other text, or has no valid variable name in it",
			"write ${NAME} alone, with NAME of letters, digits and _",
		}
	}
	if bareVariable.MatchString(text) {
		return resolved{}, &valueError{"looks like a variable without braces", "write it as ${NAME}"}
	}
	return resolved{value: text, literal: true}, nil
}

func (e Env) variable(name string) (resolved, error) {
	v, ok := "", false
	if e.Lookup != nil {
		v, ok = e.Lookup(name)
	}
	if !ok {
		return resolved{}, &valueError{
			"the environment variable " + name + " is not set", "set it where Aegis starts, or use file:/path"}
	}
	if v == "" {
		return resolved{}, &valueError{"the environment variable " + name + " is empty", "give it the secret's value"}
	}
	return resolved{value: v}, nil
}

func (e Env) file(path string) (resolved, error) {
	if path == "" {
		return resolved{}, &valueError{"file: names no file", "write file:/path/to/the/file"}
	}
	if e.ReadFile == nil {
		return resolved{}, &valueError{"files cannot be read here", "use ${NAME}"}
	}
	path = e.path(path)
	data, mode, err := e.ReadFile(path, maxSecretFile)
	if err != nil {
		return resolved{}, &valueError{
			"cannot read " + quote(path) + ": " + reason(err), "check path, owner and mode of the file"}
	}
	if len(data) > maxSecretFile {
		return resolved{}, &valueError{
			"the file " + quote(path) + " is larger than 64KiB", "name the file that holds the secret alone"}
	}
	v := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if v == "" {
		return resolved{}, &valueError{"the file " + quote(path) + " is empty", "write the secret into it"}
	}
	return resolved{value: v, open: mode.Perm()&0o004 != 0}, nil
}

// path makes a relative path start at the configuration file's folder. No path stays none.
func (e Env) path(p string) string {
	if p == "" || filepath.IsAbs(p) || e.Dir == "" {
		return p
	}
	return filepath.Join(e.Dir, p)
}

var errNotRegular = errors.New("it is not a regular file")

// readRegular reads up to limit+1 bytes of a regular file. It looks before it
// opens, as opening a named pipe would wait for a writer.
func readRegular(path string, limit int64) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errNotRegular
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	return data, info.Mode(), err
}

// reason is why a file could not be read, without the path that fs adds.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}

package spec

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

//go:generate go run ./build/generate

//go:embed catalog.json
var builtin []byte

//go:embed names.yaml scopes.yaml corrections.yaml descriptions/*.yaml
var inputs embed.FS

//go:embed facts/gitea.json
var facts []byte

// Facts returns the pinned facts of Gitea's API, a Swagger 2.0 document as spec/build writes
// it. The caller must not change them.
func Facts() []byte { return facts }

// Builtin returns the catalog of the pinned Gitea version. It is parsed anew at
// each call; the caller owns it.
//
// Every start waits for it, so it does without the checks of [Parse] and its decoder, which
// is strict and copies the text as it grows. A test holds that [Parse] reads the same and
// finds nothing wrong, and the text cannot change after that.
func Builtin() (*Catalog, error) {
	c := new(Catalog)
	var rest []Operation
	// In two halves at the same time, divided between two operations, of which each has a
	// line: reading the text is the longest thing that a start does.
	half := len(builtin) / 2
	half += bytes.Index(builtin[half:], []byte("},\n{")) + 1
	second := make(chan error, 1)
	go func() {
		second <- json.Unmarshal(slices.Concat([]byte("["), builtin[half+1:len(builtin)-len("}\n")]), &rest)
	}()
	err := json.Unmarshal(slices.Concat(builtin[:half], []byte("]}")), c)
	if err = errors.Join(err, <-second); err != nil {
		return nil, err
	}
	c.Operations = append(c.Operations, rest...)
	return c, nil
}

// Load reads the catalog of a file; "" is the built-in one.
func Load(file string) (*Catalog, error) {
	if file == "" {
		return Builtin()
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("is larger than %d MiB", maxFile>>20)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return Parse(data)
}

// maxFile bounds what is read at all; what is larger than [MaxBytes] is no catalog.
const maxFile = 64 << 20

// Inputs returns the hand-made YAML files that a catalog is built with, for
// building one from another server's description.
func Inputs() fs.FS { return inputs }

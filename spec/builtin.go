package spec

import (
	"embed"
	"io/fs"
)

//go:generate go run ./build/generate

//go:embed catalog.json
var builtin []byte

//go:embed names.yaml scopes.yaml corrections.yaml descriptions/*.yaml
var inputs embed.FS

//go:embed facts/gitea.json
var facts []byte

// Facts returns the pinned facts of Gitea's API, as spec/build encodes them. The
// caller must not change them.
func Facts() []byte { return facts }

// Builtin returns the catalog of the pinned Gitea version. It is parsed anew at
// each call; the caller owns it.
func Builtin() (*Catalog, error) { return Parse(builtin) }

// Inputs returns the hand-made YAML files that a catalog is built with, for
// building one from another server's description.
func Inputs() fs.FS { return inputs }

// Command generate rebuilds spec/catalog.json and docs/tools.md from the pinned
// facts and the YAML files of package spec. Run it with "go generate ./spec".
//
// With -swagger FILE it first replaces the pinned facts by those of a Swagger
// 2.0 description, which is how a new Gitea version is pinned.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"aegis/spec/build"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// Exit codes are those of cmd/aegis: 2 for a wrong command line, 1 for work that failed.
func run(args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("generate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", "..", "the module's root, seen from here")
	swagger := flags.String("swagger", "", "a Swagger 2.0 description to pin")
	if flags.Parse(args) != nil {
		return 2
	}
	if err := generate(*root, *swagger); err != nil {
		fmt.Fprintln(stderr, "generate:", err)
		return 1
	}
	return 0
}

// generate writes the catalog and the reference, after pinning new facts where asked. The
// files are read from the working tree and not from those embedded in spec, so that one run
// shows the effect of an edit. Both outputs are written together: a test fails when one of
// them is not what the inputs give.
func generate(root, swagger string) error {
	factsFile := filepath.Join(root, "spec", "facts", "gitea.json")
	if swagger != "" {
		if err := pin(swagger, factsFile); err != nil {
			return err
		}
	}
	data, err := os.ReadFile(factsFile)
	if err != nil {
		return err
	}
	facts, err := build.DecodeFacts(data)
	if err != nil {
		return err
	}
	cat, _, err := build.Build(facts, build.Options{Inputs: os.DirFS(filepath.Join(root, "spec")), Strict: true})
	if err != nil {
		return err
	}
	text, err := build.Encode(cat)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "spec", "catalog.json"), text, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "docs", "tools.md"), build.Markdown(cat), 0o644)
}

// pin replaces the facts by those of a description, without its prose: the words of our
// tools are written by hand, since those of a web page are too long for a list of tools.
// The new facts are read back by generate, so a description that cannot be built from fails
// here and not at the next start.
func pin(swagger, factsFile string) error {
	data, err := os.ReadFile(swagger)
	if err != nil {
		return err
	}
	facts, _, err := build.ParseSwagger(data, false)
	if err != nil {
		return err
	}
	text, err := facts.Swagger()
	if err != nil {
		return err
	}
	return os.WriteFile(factsFile, text, 0o644)
}

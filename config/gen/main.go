// Command gen writes what is made from the structs of package config: the
// reference docs/config.md and the JSON Schema config/aegis.schema.json.
// Descriptions are the fields' doc comments, rules are the fields' tags, and
// defaults are config.Default.
//
//	go run ./config/gen            from the root of the module
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// It takes its arguments, so that a test can run it in a folder of its own.
func run(args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("gen", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", ".", "root `folder` of the module")
	if flags.Parse(args) != nil {
		return 2
	}
	// Nothing is written before all of it could be made.
	files, err := generate(*root)
	if err != nil {
		fmt.Fprintln(stderr, "gen:", err)
		return 1
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(*root, name), content, 0o644); err != nil {
			fmt.Fprintln(stderr, "gen:", err)
			return 1
		}
	}
	return 0
}

// generate returns the generated files by their path below root. The test that holds
// the files in the repository to the structs calls it too, and writes nothing.
func generate(root string) (map[string][]byte, error) {
	m, err := readManual(filepath.Join(root, "config"))
	if err != nil {
		return nil, err
	}
	schema, err := m.schema()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		filepath.Join("config", "aegis.schema.json"): schema,
		filepath.Join("docs", "config.md"):           m.markdown(),
	}, nil
}

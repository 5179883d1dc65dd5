package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// The bounds of a configuration file.
const (
	maxFile  = 1 << 20 // bytes
	maxDepth = 32      // sections and lists within one another
	maxNodes = 100_000 // values, those that aliases repeat counted each time

	maxProblems = 100 // problems that are reported at once
)

// Env is what a configuration may take from outside its file. The zero value
// has no environment variables and no files.
type Env struct {
	// Lookup returns an environment variable; nil: none is set.
	Lookup func(name string) (value string, ok bool)
	// ReadFile returns up to limit+1 bytes of a regular file and its mode; nil:
	// no file can be read.
	ReadFile func(path string, limit int64) ([]byte, fs.FileMode, error)
	// Dir is the folder that relative paths start from; "" leaves them relative.
	Dir string
	// Base is what keys that the file lacks are set to; nil: [Default]. It is
	// not changed.
	Base *Config
}

// OSEnv returns the environment and the files of this process, with relative
// paths starting at dir.
func OSEnv(dir string) Env {
	return Env{Lookup: os.LookupEnv, ReadFile: readRegular, Dir: dir}
}

// Load reads and checks the configuration file. The error is [Problems] when
// the file was read and is not right, all of its problems at once.
func Load(file string) (*Config, error) {
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("cannot tell the folder of %s: %w", file, err)
	}
	return LoadEnv(file, OSEnv(dir))
}

// LoadEnv is [Load] with an environment of the caller's.
func LoadEnv(file string, env Env) (*Config, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w; "+
			"name the file with -c, or begin with a copy of aegis.example.yaml", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	c, err := Parse(file, data, env)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0 {
		c.warnOpenFile()
	}
	return c, nil
}

// Parse reads and checks a configuration. The name is that of the file in
// messages. The error is always [Problems].
func Parse(name string, data []byte, env Env) (*Config, error) {
	c := *Default()
	if env.Base != nil {
		c = *env.Base
	}
	c.source = source{file: name, at: map[string]place{}}
	d := &decoder{env: env, source: &c.source, nodes: maxNodes}
	if root := d.document(data); root != nil {
		d.root(root, &c)
	}
	if !d.fatal {
		fill(&c, env)
		d.problems = append(d.problems, c.validateBut(d.unread)...)
	}
	if len(d.problems) > 0 {
		return nil, d.report()
	}
	return &c, nil
}

// report returns the problems in order, as many as a person will read.
func (d *decoder) report() Problems {
	d.problems.Sort()
	if len(d.problems) > maxProblems {
		d.problems, d.more = d.problems[:maxProblems], true
	}
	if d.more {
		last := d.problems[maxProblems-1]
		last.Key, last.What, last.Do = "", "there are more problems than these", "mend these first"
		d.problems = append(d.problems, last)
	}
	return d.problems
}

// validateBut returns the problems that Validate finds, without those of keys
// that could not be read in the first place.
func (c *Config) validateBut(unread []string) Problems {
	return slices.DeleteFunc(c.Validate(), func(p Problem) bool {
		return slices.ContainsFunc(unread, func(key string) bool { return within(p.Key, key) })
	})
}

// within reports whether key is parent or below it.
func within(key, parent string) bool {
	rest, ok := strings.CutPrefix(key, parent)
	return ok && parent != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// source is where in its file each key of a configuration is.
type source struct {
	file     string
	at       map[string]place
	literals []string // keys of secrets written in the file itself
	warnings Problems
}

type place struct{ line, col int }

// Problem returns a problem of the configuration at key, such as
// "tools.enable[1]". A key that is not in the file gets the place of the
// closest section around it.
func (c *Config) Problem(key, what, do string) Problem {
	if c.source.at == nil {
		return c.source.problem(place{}, key, what, do)
	}
	for k := key; k != ""; k = k[:max(strings.LastIndexAny(k, ".["), 0)] {
		if at, ok := c.source.at[k]; ok {
			return c.source.problem(at, key, what, do)
		}
	}
	return c.source.problem(place{1, 1}, key, what, do)
}

func (s *source) problem(at place, key, what, do string) Problem {
	return Problem{File: s.file, Line: at.line, Col: at.col, Key: key, What: what, Do: do}
}

// IsSet reports whether the file sets key or anything below it.
func (c *Config) IsSet(key string) bool {
	_, ok := c.source.at[key]
	return ok
}

// document parses data into the node of its root mapping; nil when there is
// none or when it cannot be parsed.
func (d *decoder) document(data []byte) (root *yaml.Node) {
	if len(data) > maxFile {
		d.stop(place{1, 1}, "is larger than 1MiB", "check that this is the configuration file")
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	if !d.checkText(data) {
		return nil
	}
	lines := bytes.Split(data, []byte("\n"))
	// The YAML library panics on some inputs that it should refuse.
	defer func() {
		if recover() != nil {
			d.stop(place{1, 1}, "is not valid YAML", "check indentation and quotes")
			root = nil
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			d.syntax(err, lines)
		}
		return nil
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		d.add(place{second.Line, second.Column}, "",
			"a second document begins here", "keep one document; remove the line ---")
	case !errors.Is(err, io.EOF):
		d.syntax(err, lines)
		return nil
	}
	if len(doc.Content) == 0 {
		return nil
	}
	return doc.Content[0]
}

// checkText refuses what an editor would not show as it is read: bytes that are
// no UTF-8, control characters, and line breaks other than LF and CRLF.
func (d *decoder) checkText(data []byte) bool {
	line, col := 1, 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		crlf := r == '\r' && i+1 < len(data) && data[i+1] == '\n'
		switch {
		case r == utf8.RuneError && size == 1:
			d.stop(place{line, col}, "is not UTF-8 text", "save the file as UTF-8")
			return false
		case r < ' ' && r != '\n' && r != '\t' && !crlf, r == 0x7F, r == 0x85, r == 0x2028, r == 0x2029, r == 0xFEFF:
			d.stop(place{line, col}, fmt.Sprintf("holds the invisible character U+%04X", r),
				`remove it, or write it as \u escape in double quotes`)
			return false
		}
		i, col = i+size, col+1
		if r == '\n' {
			line, col = line+1, 1
		}
	}
	return true
}

// unquotedVariable returns where a variable is written inside braces or brackets of the
// same line without quotes: its own braces then end theirs.
func unquotedVariable(lines [][]byte) (place, bool) {
	for i, line := range lines {
		col := bytes.Index(line, []byte("${"))
		if col > 0 && bytes.ContainsAny(line[:col], "{[") && !bytes.ContainsAny(line[col-1:col], `"'`) {
			return place{i + 1, utf8.RuneCount(line[:col]) + 1}, true
		}
	}
	return place{}, false
}

var (
	yamlLine   = regexp.MustCompile(`^yaml: line ([0-9]+): `)
	yamlAnchor = regexp.MustCompile(`unknown anchor '(.*)' referenced`)
)

// find returns where s first occurs; the start of the file when nowhere.
func find(lines [][]byte, s string) place {
	for i, line := range lines {
		if col := bytes.Index(line, []byte(s)); col >= 0 {
			return place{i + 1, utf8.RuneCount(line[:col]) + 1}
		}
	}
	return place{1, 1}
}

// syntaxAdvice puts what the YAML library says, which may repeat text of the
// file, into words of ours.
var syntaxAdvice = [...]struct{ says, what, do string }{
	{"cannot start any token", "a value cannot begin like this", "indent with spaces, not tabs, and quote values that begin with @ ` % or &"},
	{"mapping values are not allowed", "a colon does not fit here", "quote the value if it holds ': ', or correct the indentation"},
	{"did not find expected key", "the indentation does not fit, or a quote or bracket is wrong", "align the keys of a section; quote values with special characters"},
	{"did not find expected '-'", "a list does not go on as it began", "align the dashes of a list; leave no other lines between them"},
	{"could not find expected ':'", "a key has no colon", "write key: value, with a space after the colon"},
	{"unexpected end of stream", "a quote is not closed", "close the quote"},
	{"unknown anchor", "a value begins with * and no anchor has that name", "put the value in quotes"},
	{"expected ',' or", "a [list] or {section} does not end, or lacks a comma", "close the bracket, and put commas between the items"},
	{"flow", "a bracket or comma is missing in a [list] or {section}", "close the bracket"},
	{"escape", `a \ in double quotes is no known escape`, `use single quotes, or write \\`},
	{"document start", "the text goes on where the document should end", "correct the indentation"},
	{"block mapping", "a section cannot begin here", "put it on a line of its own and indent it"},
}

// syntax reports a file that is no YAML. The library gives a line at most.
func (d *decoder) syntax(err error, lines [][]byte) {
	msg, at := err.Error(), place{1, 1}
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		line, _ := strconv.Atoi(m[1])
		line = min(max(line, 1), len(lines))
		text := lines[line-1]
		indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
		if tab := bytes.IndexByte(indent, '\t'); tab >= 0 {
			d.stop(place{line, tab + 1}, "the line is indented with a tab", "indent with spaces")
			return
		}
		at = place{line, len(indent) + 1}
	}
	if m := yamlAnchor.FindStringSubmatch(msg); m != nil {
		at = find(lines, "*"+m[1])
	}
	if strings.Contains(msg, "expected ',' or") {
		if at, ok := unquotedVariable(lines); ok {
			d.stop(at, "${NAME} stands in {braces} or [brackets] without quotes", `write it in quotes: "${NAME}"`)
			return
		}
	}
	for _, a := range syntaxAdvice {
		if strings.Contains(msg, a.says) {
			d.stop(at, a.what, a.do)
			return
		}
	}
	d.stop(at, "is not valid YAML", "check indentation and quotes")
}

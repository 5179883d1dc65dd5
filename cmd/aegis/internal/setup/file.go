package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"aegis/cmd/aegis/internal/doctor"
)

// clientFile is a configuration file of a client, and the server that it is to have.
// JSON and TOML are edited as text: a decoder would lose comments, order and layout.
type clientFile struct {
	path string // where the client looks; ~/ is the home folder
	toml bool   // JSON otherwise
	name string // of the server
	// keys lead to the object of servers in JSON. value is the server: members of JSON without
	// their braces, or lines of TOML.
	keys  []string
	value string
}

func (f *clientFile) lang() string {
	if f.toml {
		return "toml"
	}
	return "json"
}

// text is a whole file with the server alone. Texts of JSON are texts of TOML too, so
// the address needs no second way of quoting.
func (f *clientFile) text() string {
	if f.toml {
		return "[mcp_servers." + f.name + "]\n" + f.value
	}
	return indented(f.within(f.keys), "") + "\n"
}

// within returns an object with the server below keys.
func (f *clientFile) within(keys []string) string {
	text := "{" + quoted(f.name) + ": {" + f.value + "}}"
	for _, key := range slices.Backward(keys) {
		text = "{" + quoted(key) + ": " + text + "}"
	}
	return text
}

// indented lays JSON out, with prefix before every line but the first. It is laid out
// as most clients write it themselves, with two spaces.
func indented(text, prefix string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), prefix, "  ") != nil {
		return text // all that comes here is JSON
	}
	return b.String()
}

// add returns the file with the server in it. What was there stays byte for byte: people
// keep these files in order, and some in version control.
func (f *clientFile) add(before []byte, force bool) ([]byte, error) {
	if f.toml {
		return f.addTOML(before)
	}
	// An empty file is no JSON, and editors leave such files.
	if len(bytes.TrimSpace(before)) == 0 {
		return []byte(f.text()), nil
	}
	// Some clients take comments. A rewrite would have to keep them, and their places.
	if !json.Valid(before) {
		return nil, errors.New("this is not plain JSON (comments, perhaps); " +
			"add the entry by hand: run the command without --write to see it")
	}
	return f.addJSON(before, f.keys, 0, force)
}

// member is a member of a JSON object: its name, and where its value is. The value is
// left as it is, whatever it is.
type member struct {
	name       string
	start, end int
}

// addJSON adds the server to an object, whose text begins at an offset of doc;
// keys are the objects that still lead there.
func (f *clientFile) addJSON(doc []byte, keys []string, at int, force bool) ([]byte, error) {
	list, open, err := members(doc, at)
	if err != nil {
		return nil, err
	}
	want, depth := f.name, len(f.keys)-len(keys)+1
	if len(keys) > 0 {
		want = keys[0]
	}
	var found *member
	for i, m := range list {
		if m.name != want {
			continue
		}
		// Which of two members counts differs between readers of JSON.
		if found != nil {
			return nil, fmt.Errorf("%q comes more than once; leave one", want)
		}
		found = &list[i]
	}
	// The rest of the file may be indented otherwise; it stays, and only what is added
	// has two spaces for each level.
	prefix := strings.Repeat("  ", depth)
	switch {
	case found != nil && len(keys) > 0:
		return f.addJSON(doc, keys[1:], found.start, force)
	case found != nil:
		value := indented("{"+f.value+"}", prefix)
		// Another layout is no difference: the person may have an editor that formats.
		if doctor.SameJSON(doc[found.start:found.end], []byte(value)) {
			return doc, nil
		}
		// The name may stand for another server of theirs.
		if !force {
			return nil, fmt.Errorf("it has another %q already; choose another --name, or replace it with --force",
				f.name)
		}
		return splice(doc, found.start, found.end, value), nil
	}
	outer := strings.Repeat("  ", depth-1)
	// The objects around are there already, so their braces go.
	text := strings.TrimSuffix(strings.TrimPrefix(indented(f.within(keys), outer), "{"), "\n"+outer+"}")
	if len(list) == 0 {
		closing := open + bytes.IndexByte(doc[open:], '}')
		return splice(doc, open, closing, text+"\n"+outer), nil
	}
	end := list[len(list)-1].end
	return splice(doc, end, end, ","+text), nil
}

// members reads offsets instead of values, since encoding/json would not give the file
// back as it was. It returns the members of the object that begins at or after an offset,
// and the offset behind its opening brace.
func members(doc []byte, at int) (list []member, open int, err error) {
	// It reads tokens and says at which offset it is, without a parser of our own.
	dec := json.NewDecoder(bytes.NewReader(doc[at:]))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, 0, errors.New("what should be an object of servers is none; look at the file")
	}
	open = at + int(dec.InputOffset())
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, 0, err
		}
		// Its length gives the start: the decoder only tells where a value has ended.
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, 0, err
		}
		end := at + int(dec.InputOffset())
		list = append(list, member{fmt.Sprint(name), end - len(value), end})
	}
	return list, open, nil
}

// splice replaces doc[start:end]. It copies: doc is compared with the result.
func splice(doc []byte, start, end int, text string) []byte {
	return slices.Concat(doc[:start], []byte(text), doc[end:])
}

// inlineServers finds a table of servers that cannot be added to by a further table
// header. TOML forbids to add to an inline table, and parsers differ about one that dotted
// keys made.
var inlineServers = regexp.MustCompile(`(?m)^\s*"?mcp_servers"?\s*[=.]`)

// addTOML appends the server's table, unless the file may have it already. TOML
// takes a table anywhere, so that nothing else of the file needs to be read.
func (f *clientFile) addTOML(before []byte) ([]byte, error) {
	// A sub-table such as [mcp_servers.gitea.env] implies it too.
	table := regexp.MustCompile(`(?m)^\s*\[\s*"?mcp_servers"?\s*\.\s*["']?` + regexp.QuoteMeta(f.name) +
		`["']?\s*[.\]]`)
	switch {
	// Exactly what would be added: nothing is left to do.
	case bytes.Contains(append([]byte("\n"), before...), []byte("\n"+f.text())):
		return before, nil
	case table.Match(before):
		return nil, fmt.Errorf("it has another %q already; change it by hand, or choose another --name", f.name)
	case inlineServers.Match(before):
		return nil, errors.New("it has its servers on one line (mcp_servers = …); " +
			"add the entry by hand: run the command without --write to see it")
	}
	gap := "\n"
	switch {
	case len(before) == 0:
		gap = ""
	case !bytes.HasSuffix(before, []byte("\n")):
		gap = "\n\n"
	}
	return slices.Concat(before, []byte(gap+f.text())), nil
}

// maxClientFile bounds what is read of a client's configuration. Such files have some
// kilobytes; the bound is for a path that was mistyped.
const maxClientFile = 4 << 20

// readClientFile returns a file's content, nil when there is none.
func readClientFile(path string) ([]byte, error) {
	in, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxClientFile+1))
	if err == nil && len(data) > maxClientFile {
		err = fmt.Errorf("%s is larger than any configuration; is it the right file?", path)
	}
	return data, err
}

// replaceFile replaces a client's file. It keeps the mode of the one before, and a link
// stays a link.
func replaceFile(path string, data []byte) error {
	// Such files hold tokens of other servers.
	mode := fs.FileMode(0o600)
	// People keep these files in a repository of dotfiles and link to them.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
		if info, err := os.Stat(path); err == nil {
			mode = info.Mode().Perm()
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return WriteFile(path, data, mode)
}

// WriteFile writes a file whole or not at all: readers see the old one or the new one,
// and a link is replaced, not followed.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	// Beside the file, since a rename across file systems is a copy, which can stop
	// half-way.
	tmp, err := os.CreateTemp(filepath.Dir(path), ".aegis-*") // with 0600: it may be a secret
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	// Synced before the rename: after a power cut there would else be an empty file
	// under the name.
	if err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // err says what went wrong
	}
	return err
}

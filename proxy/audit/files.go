package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Located are the files of a log and what lies beside them.
type Located struct {
	// Sources are in the order of the chain.
	Sources []Source
	// Live is the file that is written to; "" when it is not among the sources.
	Live string
	// Keys are verifier keys that lie beside the files, KeyFile where.
	Keys    []string
	KeyFile string
	// Checkpoints are signed notes that lie beside the files.
	Checkpoints []string
}

var rotationMark = regexp.MustCompile(`-[0-9]{12,}(\.[^.]+)?$`)

// Locate finds the files of a log: those that are named, and all files of the
// log for a name that is a folder. whole adds the rotated files of each name.
func Locate(names []string, whole bool) (*Located, error) {
	var files []string
	for _, name := range names {
		found, err := expand(name, whole)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	type ordered struct {
		path  string
		first uint64
	}
	var list []ordered
	for _, f := range files {
		h, err := firstHead(f)
		first := h.seq
		switch {
		case errors.Is(err, io.EOF):
			first = 1<<64 - 1 // an empty file is the newest
		case err != nil && errors.As(err, new(*fs.PathError)):
			return nil, err
		}
		list = append(list, ordered{f, first})
	}
	slices.SortStableFunc(list, func(a, b ordered) int { return cmp.Compare(a.first, b.first) })
	out := &Located{}
	for _, f := range list {
		out.Sources = append(out.Sources, Source{Name: f.path, Open: func() (io.ReadCloser, error) { return openLog(f.path) }})
		if err := out.beside(f.path); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// expand returns the files that a name stands for.
func expand(name string, whole bool) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !whole {
		return []string{name}, nil
	}
	logs := []string{name}
	if info.IsDir() {
		keys, err := filepath.Glob(filepath.Join(name, "*.pub"))
		if err != nil || len(keys) == 0 {
			return nil, fmt.Errorf("%s has no audit log in it; name its files", name)
		}
		logs = nil
		for _, key := range keys {
			logs = append(logs, strings.TrimSuffix(key, ".pub"))
		}
	}
	var out []string
	for _, log := range logs {
		older, err := rotatedFiles(log)
		if err != nil {
			return nil, err
		}
		for _, r := range older {
			out = append(out, r.path)
		}
		if _, err := os.Stat(log); err == nil {
			out = append(out, log)
		}
	}
	return out, nil
}

// beside reads the key and the checkpoint next to a file.
func (l *Located) beside(file string) error {
	base := strings.TrimSuffix(file, ".gz")
	if rotationMark.MatchString(base) {
		base = rotationMark.ReplaceAllString(base, "$1")
	} else {
		l.Live = file
		switch signed, err := readSmall(notePath(file), maxNote); {
		case err == nil:
			l.Checkpoints = append(l.Checkpoints, signed)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if l.KeyFile != "" {
		return nil
	}
	keys, err := ReadKeys(publicPath(base))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	l.Keys, l.KeyFile = keys, publicPath(base)
	return err
}

// ReadKeys reads verifier keys, one a line.
func ReadKeys(file string) ([]string, error) {
	text, err := readSmall(file, maxKeyFile)
	if err != nil {
		return nil, err
	}
	keys := strings.Fields(text)
	if slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, "PRIVATE+KEY+") }) {
		return nil, fmt.Errorf("%s holds the private key; verification takes the public one, the log's .pub file", file)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s holds no key", file)
	}
	return keys, nil
}

// ReadNote reads a signed checkpoint that was kept.
func ReadNote(file string) (string, error) { return readSmall(file, maxNote) }

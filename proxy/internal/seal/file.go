package seal

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"aegis/proxy/internal/files"
)

// maxFile bounds a key file in bytes.
const maxFile = 64 << 10

// fileHead explains a key file to people who open it.
const fileHead = `# Keys of Aegis, one a line; the first one seals, all open. Whoever reads this
# file can read the store: keep it apart from the store's backups, and have a copy.
`

// OpenFile returns the ring of a key file: lines of 32 to 4096 characters, each
// a key as it is, empty lines and those that begin with # left out. A line
// can be moved to the configuration (store.keys) as it is.
//
// A file that is missing is made with one random key, readable by its owner
// alone, together with its folder. Of several processes that do so at once, one
// makes it and all get the same ring. A file that others than its owner may read
// or write, and one that is a symbolic link, is refused.
func OpenFile(path string) (*Ring, error) {
	ring, err := readRing(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return ring, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	err = files.Create(path, append([]byte(fileHead), newLine()...))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("key file: %w", err)
	}
	return readRing(path)
}

// Rotate puts a new random key in front of those of the file and returns its
// id. A reader, or a crash, sees the old file or the new one. Rings that are
// open keep their keys; what the new key seals opens in rings made from now on.
func Rotate(path string) (kid string, err error) {
	unlock, err := files.Lock(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("key file: %w; Aegis makes it at its first start", err)
	}
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("key file: another rotation is under way; remove %s.lock if it is not", path)
	}
	if err != nil {
		return "", fmt.Errorf("key file: %w", err)
	}
	defer unlock()
	text, err := read(path)
	if err != nil {
		return "", err
	}
	if _, err := parse(path, text); err != nil {
		return "", err
	}
	text = slices.Concat([]byte(fileHead), newLine(), bytes.TrimPrefix(text, []byte(fileHead)))
	ring, err := parse(path, text)
	if err != nil {
		return "", err
	}
	if err := files.Replace(path, text, 0o600); err != nil {
		return "", fmt.Errorf("key file: %w", err)
	}
	return ring.KeyIDs()[0], nil
}

// newLine returns a new key and its line end.
func newLine() []byte {
	raw := make([]byte, keySize)
	_, _ = rand.Read(raw) // never fails: it ends the process instead
	return append(base64.RawURLEncoding.AppendEncode(nil, raw), '\n')
}

func readRing(path string) (*Ring, error) {
	text, err := read(path)
	if err != nil {
		return nil, err
	}
	return parse(path, text)
}

// parse never quotes what it reads.
func parse(path string, text []byte) (*Ring, error) {
	var secrets [][]byte
	n := 0
	unclean := func(c rune) bool { return c <= ' ' || c > '~' }
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if len(line) < MinKey || len(line) > MaxKey || bytes.ContainsFunc(line, unclean) {
			return nil, fmt.Errorf("key file: %s:%d: not a key; a key is a line of %d to %d visible ASCII characters "+
				"without spaces", path, n, MinKey, MaxKey)
		}
		secrets = append(secrets, line)
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("key file: %s has no key; restore it from a copy, "+
			"or remove it together with the store to begin anew", path)
	}
	ring, err := New(secrets...)
	if err != nil {
		return nil, fmt.Errorf("key file: %s: %w", path, err)
	}
	return ring, nil
}

// read returns the text of a key file that is fit to be one.
func read(path string) ([]byte, error) {
	text, err := files.ReadSmall(path, maxFile, private)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	return text, nil
}

// private fails unless the owner alone may use the file. Modes say nothing on Windows, where
// the folder is trusted.
func private(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return fmt.Errorf("%s may be used by others (mode %04o); run chmod 600 on it, "+
			"and rotate its keys if somebody else can have read it", f.Name(), mode)
	}
	return nil
}

package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"aegis/proxy"
	"aegis/proxy/internal/files"
)

// publish makes sure that the key in use is the last one in the log's .pub
// file, behind those that signed before: without them what they signed could not be
// distinguished from forgeries. It returns the record about a new key.
func (w *writer) publish() ([]*Record, error) {
	w.warnOfMode()
	file := publicPath(w.o.Path)
	before, err := ReadKeys(file)
	// Not a reason to refuse calls: keys that were kept elsewhere verify the log as well.
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.o.Log.Warn().Err(err).Msg("the audit log's public key file is of no use; it is replaced")
		before = nil
	}
	w.keys = nil
	for _, k := range before {
		if v, err := note.NewVerifier(k); err == nil && k != w.signer.public && !slices.Contains(w.keys, k) {
			w.keys, w.known = append(w.keys, k), append(w.known, v)
		}
	}
	own, err := note.NewVerifier(w.signer.public)
	if err != nil {
		return nil, err
	}
	w.keys, w.known = append(w.keys, w.signer.public), append(w.known, own)
	// ReadKeys refuses larger files. What a key that goes here has signed can still be verified
	// with a copy that was kept elsewhere.
	for len(w.publicText()) > maxKeyFile { // the oldest go
		w.keys = w.keys[1:]
	}
	if !slices.Equal(before, w.keys) {
		if err := files.Replace(file, []byte(w.publicText()), 0o644); err != nil {
			return nil, err
		}
	}
	if len(w.keys) == 1 || slices.Contains(before, w.signer.public) { // the first key, or a known one
		return nil, nil
	}
	w.o.Log.Warn().Str("key", own.Name()).Msg("the audit log's private key was replaced; " +
		"the public key of the one before stays in the .pub file")
	return []*Record{{Event: LogRecovered, Detail: &Detail{
		Reason: "the private key is another one than before: it was lost or replaced", Key: w.signer.public,
	}}}, nil
}

// publicText is the content of the .pub file.
func (w *writer) publicText() string { return strings.Join(w.keys, "\n") + "\n" }

// warnOfMode logs a warning about a private key that others can read.
func (w *writer) warnOfMode() {
	info, err := os.Stat(w.o.KeyFile)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		w.o.Log.Warn().Str("file", w.o.KeyFile).Str("mode", fmt.Sprintf("%#o", info.Mode().Perm())).
			Msg("others than the owner have access to the audit log's private key, and could forge the log with it; " +
				"make its mode 0600")
	}
}

// compare holds the log to the newest checkpoint that was kept beside it, which
// the key in use or one before it signed. When that one is ahead, records are
// missing; the chain then goes on from the checkpoint, so that the gap stays
// visible for good. A checkpoint of another key, or of none, is kept aside.
func (w *writer) compare() ([]*Record, error) {
	signed, err := readSmall(notePath(w.o.Path), maxNote)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var p pin
	own := false
	if err == nil {
		// By any of the keys: a checkpoint of the key before vouches for records all the same.
		if p, err = openNote(signed, note.VerifierList(w.known...)); err == nil {
			_, foreign := openNote(signed, note.VerifierList(w.known[len(w.known)-1]))
			own = foreign == nil
		}
	}
	var about []*Record
	if !own {
		file, asideErr := w.keepNote(signed)
		if asideErr != nil {
			return nil, fmt.Errorf("the checkpoint of another key cannot be kept aside: %w", asideErr)
		}
		d := &Detail{Reason: "the checkpoint file is signed with an earlier key; it is kept aside", File: file}
		if err != nil {
			d.Reason = "the checkpoint file could not be read with the keys of the log; it is kept aside: " +
				proxy.Clip(err.Error(), 200)
			w.o.Log.Warn().Err(err).Str("file", file).Msg("the audit log's checkpoint file is of no use; " +
				"it is kept aside and replaced")
		}
		about = append(about, &Record{Event: LogRecovered, Detail: d})
	}
	if err != nil || p.seq <= w.last.seq {
		return about, nil
	}
	d := &Detail{
		Reason: "a signed checkpoint is ahead of the log: records are missing",
		First:  w.last.seq + 1, Last: p.seq, LastHash: p.hash.String(),
	}
	w.o.Log.Error().Uint64("first", d.First).Uint64("last", d.Last).Msg("the audit log has been cut: " +
		"records that a signed checkpoint knows are missing; the gap is recorded")
	// The records that are left cannot be joined to what comes now; verify shows the gap. A
	// chain that went on from them would hide that there were others.
	w.last = p.position
	return append(about, &Record{Event: LogCut, Detail: d}), nil
}

// keepNote keeps the checkpoint file under another name, which it returns
// without the folder. One that could not be read is moved, whatever it is.
func (w *writer) keepNote(signed string) (string, error) {
	path := w.o.Path
	name := strings.TrimSuffix(path, filepath.Ext(path)) + ".checkpoint-" + w.stamp()
	if signed == "" {
		return filepath.Base(name), os.Rename(notePath(path), name)
	}
	// A copy: the file itself stays until the records about it are written.
	return filepath.Base(name), files.Replace(name, []byte(signed), 0o644)
}

package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"aegis/proxy/internal/files"
)

// maxKeyFile bounds a key file.
const maxKeyFile = 4 << 10

// signer signs checkpoints.
type signer struct {
	note.Signer
	public string // verifier key, which the library does not give for a private one
}

// loadSigner reads the private key in file, and makes one when there is none.
func loadSigner(file string) (*signer, error) {
	text, err := readSmall(file, maxKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = makeKey(file)
	}
	if err != nil {
		return nil, fmt.Errorf("audit key: %w", err)
	}
	s, err := note.NewSigner(strings.TrimSpace(text))
	if err != nil {
		// The library's error would say nothing of use, and must not quote a key.
		return nil, fmt.Errorf(`audit key: %s holds no private key of a signed note; `+
			`remove the file and a new one is made`, file)
	}
	public, err := publicOf(strings.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("audit key: %s: %w", file, err)
	}
	return &signer{s, public}, nil
}

// makeKey writes a new private key. The name has random digits, so that a verifier can
// tell the keys of several logs apart by name.
func makeKey(file string) (string, error) {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails: it ends the process instead
	private, _, err := note.GenerateKey(rand.Reader, "aegis-audit-"+hex.EncodeToString(id))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", err
	}
	return private, files.Replace(file, []byte(private+"\n"), 0o600)
}

// publicOf returns the verifier key of a private one. The key's seed is the
// last part of PRIVATE+KEY+name+hash+base64(algorithm, seed).
func publicOf(private string) (string, error) {
	parts := strings.SplitN(private, "+", 5)
	if len(parts) != 5 {
		return "", errors.New("the key is malformed")
	}
	raw, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(raw) < 1 {
		return "", errors.New("the key is malformed")
	}
	return verifierKey(parts[2], raw[1:])
}

// pin is what a checkpoint says: record seq has this hash.
type pin struct {
	position
	at time.Time
}

// The text of a checkpoint's note: these lines, then the signatures.
//
//	aegis audit log v1
//	<sequence number>
//	<hash, hexadecimal>
//	<time>
const noteTitle = "aegis audit log v1"

// sign returns the signed note of a checkpoint.
func (s *signer) sign(p pin) (string, error) {
	text := fmt.Sprintf("%s\n%d\n%s\n%s\n", noteTitle, p.seq, p.hash, p.at.UTC().Format(timeForm))
	signed, err := note.Sign(&note.Note{Text: text}, s.Signer)
	return string(signed), err
}

// maxNote bounds a note that is read.
const maxNote = 4 << 10

// openNote checks a note's signature and returns what it says. The error wraps
// the library's: [*note.UnverifiedNoteError] for a key that is not among known.
func openNote(signed string, known note.Verifiers) (pin, error) {
	if len(signed) > maxNote {
		return pin{}, errors.New("the note is too long")
	}
	n, err := note.Open([]byte(signed), known)
	if err != nil {
		return pin{}, err
	}
	return parsePin(n.Text)
}

// parsePin reads the text strictly: a signature vouches for the bytes, and two
// readings of them must not be possible.
func parsePin(text string) (pin, error) {
	lines := strings.Split(text, "\n")
	bad := errors.New("the note is not a checkpoint of an audit log")
	if len(lines) != 5 || lines[0] != noteTitle || lines[4] != "" {
		return pin{}, bad
	}
	var p pin
	var err error
	if p.seq, err = parseSeq([]byte(lines[1])); err != nil || !parseHash(&p.hash, []byte(lines[2])) {
		return pin{}, bad
	}
	if p.at, err = time.Parse(timeForm, lines[3]); err != nil {
		return pin{}, bad
	}
	return p, nil
}

// verifierKey returns the verifier form of an Ed25519 seed's public key.
func verifierKey(name string, seed []byte) (string, error) {
	if len(seed) != ed25519.SeedSize { // NewKeyFromSeed panics
		return "", errors.New("the key is no Ed25519 key")
	}
	// RFC 8032 keys as Go stores them: the seed, then the public key.
	public := ed25519.NewKeyFromSeed(seed)[ed25519.SeedSize:]
	return note.NewEd25519VerifierKey(name, ed25519.PublicKey(public))
}

package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"aegis/proxy/internal/seal"
)

// Rotation is what [Rotate] has done.
type Rotation struct {
	// KeyID names the new key.
	KeyID string
	// Resealed is how many values it sealed anew.
	Resealed int
	// InUse says that a running Aegis has the store open. It uses the new key once
	// it has loaded its configuration again, and seals older values anew as it
	// reads them.
	InUse bool
}

// Rotate puts a new key in front of the key file and, unless the store is open
// elsewhere or missing, seals it anew with it. A store with values whose key is
// missing already is left alone, and the keys with it. The older keys stay in
// the file: client ids and refresh tokens were derived from them.
func Rotate(ctx context.Context, keyFile, storeFile string) (Rotation, error) {
	if _, err := os.Lstat(keyFile); errors.Is(err, fs.ErrNotExist) {
		_, err := seal.Rotate(keyFile) // says what to do; OpenFile would make the file
		return Rotation{}, err
	}
	ring, err := seal.OpenFile(keyFile)
	if err != nil {
		return Rotation{}, err
	}
	f, err := openExisting(storeFile)
	switch {
	case errors.Is(err, ErrInUse):
		id, err := seal.Rotate(keyFile)
		return Rotation{KeyID: id, InUse: true}, err
	case errors.Is(err, fs.ErrNotExist):
		id, err := seal.Rotate(keyFile)
		return Rotation{KeyID: id}, err
	case err != nil:
		return Rotation{}, err
	}
	defer f.Close()
	if err := Sealed(f, ring).Check(ctx); err != nil {
		return Rotation{}, err
	}
	id, err := seal.Rotate(keyFile)
	if err != nil {
		return Rotation{}, err
	}
	if ring, err = seal.OpenFile(keyFile); err != nil {
		return Rotation{KeyID: id}, err
	}
	n, err := Sealed(f, ring).Reseal(ctx)
	return Rotation{KeyID: id, Resealed: n}, err
}

// openExisting makes no file, unlike OpenFile: a wrong path would look like an empty store.
func openExisting(path string) (*File, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return OpenFile(path, FileOptions{Sweep: -1})
}

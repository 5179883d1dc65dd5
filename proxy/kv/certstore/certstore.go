// Package certstore keeps certificates, their keys and the ACME account in a
// [kv.Store], for several processes that serve the same hosts: one of them orders
// a certificate, all load it, and any of them answers the authority's challenge,
// whose token is there too. The store must seal what it keeps.
//
// A lock is a lease that its holder renews. A holder that dies, or is stopped for
// longer than the lease, loses it; what it then still does is harmless, as the
// library stores whole files and looks again before it orders.
package certstore

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"aegis/proxy/kv"
)

// Options are the knobs of [New]; the zero value is fit for use.
type Options struct {
	// Lease is how long a lock outlives its holder; 0: 30 s. It is renewed three
	// times as often.
	Lease time.Duration
	// Poll is between two looks at a lock that another process has; 0: 1 s.
	Poll time.Duration
	// Failed is called when a lease could not be renewed; may be nil.
	Failed func(error)
}

// Storage implements [certmagic.Storage]. It is safe for concurrent use.
type Storage struct {
	store kv.Store
	o     Options

	mu    sync.Mutex
	locks map[string]*lock
}

// lock is one that this process holds.
type lock struct {
	stop func()        // ends the renewal
	done chan struct{} // closed when it has ended
	mu   sync.Mutex
	// version is that of the lease as it was last written.
	version uint64
}

// New returns the storage in a store.
func New(store kv.Store, o Options) *Storage {
	o.Lease, o.Poll = cmp.Or(o.Lease, 30*time.Second), cmp.Or(o.Poll, time.Second)
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	return &Storage{store: store, o: o, locks: map[string]*lock{}}
}

// The keys begin with these. Leases are apart from files, so that listing a folder, or moving
// the store, does not meet them.
const (
	files  = "cert/"
	leases = "lease/cert/"
)

// fileKey returns the key of a file. What would not fit, or could be another
// file's, is refused.
func fileKey(name string) (string, error) {
	clean := path.Clean("/" + name)[1:]
	if clean == "" || clean != strings.Trim(name, "/") {
		return "", fmt.Errorf("certificates: %q names no file", name)
	}
	return files + clean, nil
}

// Store implements [certmagic.Storage]. The value is kept behind the time.
func (s *Storage) Store(ctx context.Context, name string, value []byte) error {
	key, err := fileKey(name)
	if err != nil {
		return err
	}
	at := binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(value)), uint64(time.Now().UnixNano()))
	return s.store.Put(ctx, key, append(at, value...), 0)
}

// load returns a file and when it was stored, which the library asks for and no entry of the
// store knows.
func (s *Storage) load(ctx context.Context, name string) (value []byte, at time.Time, err error) {
	key, err := fileKey(name)
	if err != nil {
		return nil, at, err
	}
	e, err := s.store.Get(ctx, key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, at, fmt.Errorf("certificates: %s: %w", name, fs.ErrNotExist)
	case err != nil:
		return nil, at, err
	case len(e.Value) < 8:
		return nil, at, fmt.Errorf("certificates: %s is damaged", name)
	}
	return e.Value[8:], time.Unix(0, int64(binary.BigEndian.Uint64(e.Value))), nil
}

// Load implements [certmagic.Storage]; the error wraps [fs.ErrNotExist] when there
// is no such file.
func (s *Storage) Load(ctx context.Context, name string) ([]byte, error) {
	value, _, err := s.load(ctx, name)
	return value, err
}

// Delete implements [certmagic.Storage]: the file, or all below a folder. A file that is made
// in the folder meanwhile may stay.
func (s *Storage) Delete(ctx context.Context, name string) error {
	key, err := fileKey(name)
	if err != nil {
		return err
	}
	if err := s.store.Delete(ctx, key); err != nil {
		return err
	}
	for k, err := range s.store.Keys(ctx, key+"/") {
		if err != nil {
			return err
		}
		if err := s.store.Delete(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// Exists implements [certmagic.Storage].
func (s *Storage) Exists(ctx context.Context, name string) bool {
	_, err := s.Stat(ctx, name)
	return err == nil
}

// List implements [certmagic.Storage].
func (s *Storage) List(ctx context.Context, folder string, recursive bool) ([]string, error) {
	prefix := files
	if clean := strings.Trim(folder, "/"); clean != "" {
		key, err := fileKey(clean)
		if err != nil {
			return nil, err
		}
		prefix = key + "/"
	}
	var list []string
	for k, err := range s.store.Keys(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		rest := k[len(prefix):]
		if !recursive {
			rest, _, _ = strings.Cut(rest, "/")
		}
		list = append(list, prefix[len(files):]+rest)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("certificates: %s: %w", folder, fs.ErrNotExist)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Stat implements [certmagic.Storage].
func (s *Storage) Stat(ctx context.Context, name string) (certmagic.KeyInfo, error) {
	value, at, err := s.load(ctx, name)
	if err == nil {
		return certmagic.KeyInfo{Key: name, Modified: at, Size: int64(len(value)), IsTerminal: true}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return certmagic.KeyInfo{}, err
	}
	key, _ := fileKey(name) // load has found it right
	for _, lerr := range s.store.Keys(ctx, key+"/") {
		if lerr != nil {
			return certmagic.KeyInfo{}, lerr
		}
		return certmagic.KeyInfo{Key: name}, nil
	}
	return certmagic.KeyInfo{}, err
}

// String names the storage in the library's messages.
func (s *Storage) String() string { return "the store" }

var _ certmagic.Storage = (*Storage)(nil)

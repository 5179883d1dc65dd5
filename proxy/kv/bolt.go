package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// The file has two buckets. "data" holds under each key 8 bytes of version, 8
// bytes of expiry (nanoseconds since 1970, 0: never), both big endian, and the
// value; its sequence is the last version given. "expiry" holds an empty value
// under each expiry and key, in the order of time.

// lockWait is how long an open waits for the file, unless it is told otherwise: a
// process that is just ending gives it up in that time.
const lockWait = 500 * time.Millisecond

// batchDelay is how long a write waits for others to share its fsync.
const batchDelay = 500 * time.Microsecond

// openBolt opens the database and makes its buckets.
func openBolt(path string, wait time.Duration) (db *bolt.DB, err error) {
	defer func() {
		// The library trusts what it reads: on a damaged file it panics, or reads
		// outside of it.
		if p := recover(); p != nil {
			db, err = nil, damaged(path, fmt.Errorf("%v", p))
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // for this goroutine
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := whole(path, wait); err != nil {
		return nil, err
	}
	db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: wait, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return nil, openError(path, err)
	}
	db.MaxBatchDelay = batchDelay
	err = db.Update(func(t *bolt.Tx) error {
		_, err := t.CreateBucketIfNotExists([]byte("data"))
		if err == nil {
			_, err = t.CreateBucketIfNotExists([]byte("expiry"))
		}
		return err
	})
	if err != nil {
		err = openError(path, err)
	} else {
		err = settle(path)
	}
	if err != nil {
		_ = db.Close() // err says why the file cannot be used
		return nil, err
	}
	return db, nil
}

// whole fails for a file that is there and cannot be a store, or was cut: the
// library would read past its end, which ends the process.
func whole(path string, wait time.Duration) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil // it will be made
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file; configure another path", path)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: wait, ReadOnly: true})
	if err != nil {
		return openError(path, err)
	}
	defer db.Close()
	return db.View(func(t *bolt.Tx) error {
		if info, err := os.Stat(path); err != nil || info.Size() < t.Size() {
			return damaged(path, errors.Join(err, errors.New("its end is missing")))
		}
		return nil
	})
}

// openError says what an error of the library means for the operator.
func openError(path string, err error) error {
	if errors.Is(err, bolterrors.ErrTimeout) {
		return fmt.Errorf("%w: stop the one that has %s open, or give this one another path", ErrInUse, path)
	}
	if system := (*fs.PathError)(nil); errors.As(err, &system) {
		return err // no space, no permission: the file may be sound
	}
	return damaged(path, err)
}

// damaged is the error of a file that has to be replaced.
func damaged(path string, err error) error {
	return fmt.Errorf("%s cannot be used; restore it from a backup, or remove it and everybody signs in again: %w",
		path, err)
}

// settle closes the file to others than its owner, and makes its name durable.
func settle(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(path, 0o600); err != nil {
			return err
		}
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	_ = d.Sync() // not every system can
	return d.Close()
}

// tx is a transaction's view of the buckets.
type tx struct{ data, expiry *bolt.Bucket }

func buckets(t *bolt.Tx) tx {
	return tx{t.Bucket([]byte("data")), t.Bucket([]byte("expiry"))}
}

const recordHead = 16

// live returns the entry of key, whose value is the file's own memory.
func (t tx) live(key string, now time.Time) (Entry, error) {
	raw := t.data.Get([]byte(key))
	if raw == nil {
		return Entry{}, ErrNotFound
	}
	if len(raw) < recordHead {
		return Entry{}, errors.New("store: an entry is damaged; restore the file from a backup")
	}
	if expired(raw, now) {
		return Entry{}, ErrNotFound
	}
	e := Entry{Value: raw[recordHead:], Version: binary.BigEndian.Uint64(raw)}
	if at := binary.BigEndian.Uint64(raw[8:]); at != 0 {
		e.Expires = time.Unix(0, int64(at))
	}
	return e, nil
}

// expired reports whether a record's time has come.
func expired(raw []byte, now time.Time) bool {
	at := int64(binary.BigEndian.Uint64(raw[8:]))
	return at != 0 && now.UnixNano() >= at
}

// put writes key and returns its new version.
func (t tx) put(key string, value []byte, expires time.Time) (uint64, error) {
	if err := t.unlist(key); err != nil {
		return 0, err
	}
	version, err := t.data.NextSequence()
	if err != nil {
		return 0, err
	}
	raw := binary.BigEndian.AppendUint64(make([]byte, 0, recordHead+len(value)), version)
	at := uint64(0)
	if !expires.IsZero() {
		at = uint64(expires.UnixNano())
		if err := t.expiry.Put(expiryKey(at, key), nil); err != nil {
			return 0, err
		}
	}
	raw = append(binary.BigEndian.AppendUint64(raw, at), value...)
	return version, t.data.Put([]byte(key), raw)
}

// remove deletes key, expired or not.
func (t tx) remove(key string) error {
	if err := t.unlist(key); err != nil {
		return err
	}
	return t.data.Delete([]byte(key))
}

// unlist removes the expiry of key's present entry.
func (t tx) unlist(key string) error {
	raw := t.data.Get([]byte(key))
	if len(raw) < recordHead {
		return nil
	}
	at := binary.BigEndian.Uint64(raw[8:])
	if at == 0 {
		return nil
	}
	return t.expiry.Delete(expiryKey(at, key))
}

// expiryKey orders entries by time, since numbers in big endian sort as bytes do.
func expiryKey(at uint64, key string) []byte {
	return append(binary.BigEndian.AppendUint64(nil, at), key...)
}

// keys returns the next keys with the prefix, beginning at from, and where to
// go on; nil at the end.
func (t tx) keys(from, prefix []byte, now time.Time) (keys []string, next []byte) {
	c := t.data.Cursor()
	n := 0
	for k, raw := c.Seek(from); bytes.HasPrefix(k, prefix) && k != nil; k, raw = c.Next() {
		if n++; n > keysAtOnce {
			return keys, bytes.Clone(k)
		}
		if len(raw) >= recordHead && !expired(raw, now) {
			keys = append(keys, string(k))
		}
	}
	return keys, nil
}

// due returns the first key of the expiry bucket whose time has come, or nil.
func (t tx) due(now time.Time) []byte {
	k, _ := t.expiry.Cursor().First()
	if len(k) <= 8 || int64(binary.BigEndian.Uint64(k)) > now.UnixNano() {
		return nil
	}
	return k
}

// sweep deletes up to most keys that have expired, and returns how many.
func (t tx) sweep(now time.Time, most int) (n int, err error) {
	for ; n < most; n++ {
		k := bytes.Clone(t.due(now)) // a deletion moves what a cursor returned
		if k == nil {
			return n, nil
		}
		if err := t.expiry.Delete(k); err != nil {
			return n, err
		}
		if err := t.data.Delete(k[8:]); err != nil {
			return n, err
		}
	}
	return n, nil
}

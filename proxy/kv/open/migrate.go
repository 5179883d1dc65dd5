package open

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"aegis/config"
	"aegis/proxy/kv"
)

// Migration is what [Migrate] has done.
type Migration struct {
	// Copied is how many entries were copied, Skipped how many were not, since
	// they are of use to running replicas alone or expired meanwhile.
	Copied, Skipped int
}

// passingKeys begin the keys of entries that say something of running replicas.
var passingKeys = []string{"lease/", "meta/", "check/"}

// Migrate copies the store of one configuration into that of another, sealed with
// the latter's keys, with what is left of every lifetime. No Aegis may use either of
// them. It refuses a target that holds anything, and keys that lack one of the
// source's: client ids and refresh tokens are derived from those.
func Migrate(ctx context.Context, from, to *config.Config) (m Migration, err error) {
	source, err := Existing(ctx, from)
	if err != nil {
		return m, fmt.Errorf("source: %w", err)
	}
	defer source.Close()
	target, err := command(ctx, to)
	if err != nil {
		return m, fmt.Errorf("target: %w", err)
	}
	defer func() {
		if cerr := target.Close(); err == nil {
			err = cerr
		}
	}()
	if err := fits(ctx, source, target); err != nil {
		return m, err
	}
	for key, err := range source.Keys(ctx, "") {
		if err != nil {
			return m, fmt.Errorf("source: %w", err)
		}
		done, err := copyEntry(ctx, source, target, key)
		if err != nil {
			return m, err
		}
		if done {
			m.Copied++
		} else {
			m.Skipped++
		}
	}
	return m, nil
}

// fits reports why the target cannot take what the source holds. It must hold nothing: entries
// of two stores that are mixed could revive a grant that was revoked in one of them.
func fits(ctx context.Context, source, target *Store) error {
	ids, fresh := source.ring.KeyIDs(), target.ring
	for _, id := range ids {
		if !fresh.Has(id) {
			return fmt.Errorf("the target's keys lack key %s of the source; "+
				"put the lines of the source's key file (or its store.keys) "+
				"into the target's, the first one first", id)
		}
	}
	// Of several keys the first one makes new ids and tokens; another one first would be a
	// rotation that went unnoticed.
	if ids[0] != fresh.KeyIDs()[0] {
		return errors.New("the target's first key is not the source's; put that one first, " +
			"and rotate afterwards if you like")
	}
	for key, err := range target.Keys(ctx, "") {
		if err != nil {
			return fmt.Errorf("target: %w", err)
		}
		if !isPassing(key) {
			return errors.New("the target holds entries already; give it another path or prefix, or empty it")
		}
	}
	return nil
}

// isPassing reports whether an entry is about replicas that run, so that another store has no
// use for it: a lease that was copied would lock out its holder, a count would count the dead.
func isPassing(key string) bool {
	return slices.ContainsFunc(passingKeys, func(p string) bool { return strings.HasPrefix(key, p) })
}

// copyEntry copies one entry, unless it is not for others or has expired.
func copyEntry(ctx context.Context, source, target *Store, key string) (bool, error) {
	if isPassing(key) {
		return false, nil
	}
	e, err := source.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("source: %w", err)
	}
	ttl, alive := e.Left(source.Now())
	if !alive {
		return false, nil
	}
	if err := target.Put(ctx, key, e.Value, ttl); err != nil {
		return false, fmt.Errorf("target: %w", err)
	}
	return true, nil
}

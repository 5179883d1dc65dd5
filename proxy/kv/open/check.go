package open

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"aegis/config"
	"aegis/proxy/internal/seal"
	"aegis/proxy/kv"
	"aegis/proxy/kv/redis"
)

// Check looks whether the store of a configuration is fit for use, and whether its
// keys are those of what it holds. It makes no file.
func Check(ctx context.Context, cfg *config.Config) []redis.Finding {
	var list []redis.Finding
	add := func(g redis.Grade, what, do string) { list = append(list, redis.Finding{Grade: g, What: what, Do: do}) }
	if cfg.Store.Shared() {
		r, err := newRedis(cfg.Store)
		if err != nil {
			add(redis.Failure, err.Error(), "correct the configuration")
			return list
		}
		list = r.Inspect(ctx)
		_ = r.Close() // nothing was written that is to stay
		if len(list) == 1 && list[0].Grade == redis.Failure {
			return list // it cannot be reached, and all else would say that again
		}
		if !cfg.Store.Encrypted() {
			add(redis.Warning, "the connection is not encrypted", "use rediss:// unless the network is trusted")
		}
	}
	s, err := Existing(ctx, cfg)
	if err != nil {
		add(redis.Failure, err.Error(), "mend that first")
		return list
	}
	defer s.Close()
	// Opening it has tried the keys on every value; what is left is to count.
	n := 0
	for _, err := range s.Keys(ctx, "") {
		if err != nil {
			add(redis.Failure, "the entries cannot be listed: "+err.Error(), "mend that first")
			return list
		}
		n++
	}
	add(redis.OK, fmt.Sprintf("%d entries, which the keys %s open", n, strings.Join(s.ring.KeyIDs(), ", ")), "")
	return list
}

// RotateKeys puts a new key in front of the store's key file and seals the store
// anew with it. [kv.Rotation].InUse reports that a running Aegis has the store: it
// takes the new key at its next reload. Keys that are in the configuration (store.keys) are
// an error, which says what to do: a command does not rewrite what a person keeps. A shared
// store is never sealed anew here, as replicas that lack the new key may be reading it.
func RotateKeys(ctx context.Context, cfg *config.Config) (kv.Rotation, error) {
	store, keys := Files(cfg)
	if len(cfg.Store.Keys) > 0 {
		return kv.Rotation{}, errors.New("the keys are in the configuration (store.keys): put a new one in front, " +
			"keep the others behind it, and reload; " +
			`make one with "openssl rand -hex 32"`)
	}
	if cfg.Store.Shared() {
		id, err := seal.Rotate(keys)
		return kv.Rotation{KeyID: id, InUse: true}, err
	}
	return kv.Rotate(ctx, keys, store)
}

package server

import (
	"encoding/hex"
	"reflect"

	"aegis/config"
	"aegis/proxy/envelope"
)

// shareCursors makes cursors that every replica can open, unless a key of their own
// is configured.
func (s *Server) shareCursors() (err error) {
	if s.cfg.Store.Shared() && s.cfg.Server.CursorKey.IsZero() {
		s.cursors, err = envelope.NewCursors(hex.EncodeToString(s.derive("cursor")[0]))
	}
	return err
}

// sameStore reports whether both configurations have one store. Keys may change
// while it is open.
func sameStore(a, b *config.Config) bool {
	kept := *b
	keepStore(a, &kept)
	return reflect.DeepEqual(kept.Store, b.Store)
}

func keepStore(from, to *config.Config) {
	keys, file, grace := to.Store.Keys, to.Store.KeyFile, to.Store.Grace
	to.Store = from.Store
	to.Store.Keys, to.Store.KeyFile, to.Store.Grace = keys, file, grace
}

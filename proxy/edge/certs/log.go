package certs

import (
	"github.com/rs/zerolog"
	"go.uber.org/zap/zapcore"
)

// bridge passes the ACME library's log on. Its routine is for debugging only:
// what matters is said in our own words. Its own debug level, which shows the
// exchange with the authority, is left out.
type bridge struct {
	log    zerolog.Logger
	fields []zapcore.Field
}

// Enabled leaves out the library's debug level.
func (b *bridge) Enabled(l zapcore.Level) bool { return l >= zapcore.InfoLevel }

// With returns the bridge with more fields. The slice is cut to its length, as two loggers made
// of one would write over each other's fields.
func (b *bridge) With(fields []zapcore.Field) zapcore.Core {
	return &bridge{log: b.log, fields: append(b.fields[:len(b.fields):len(b.fields)], fields...)}
}

// Check takes the entries that Enabled lets through.
func (b *bridge) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if b.Enabled(e.Level) {
		return c.AddCore(e, b)
	}
	return c
}

// Write writes an entry as one of ours.
func (b *bridge) Write(e zapcore.Entry, fields []zapcore.Field) error {
	// Its errors are warnings here: it goes on trying, and what is lasting comes as an event.
	ev := b.log.Debug()
	if e.Level >= zapcore.WarnLevel {
		ev = b.log.Warn()
	}
	if !ev.Enabled() {
		ev.Discard()
		return nil
	}
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range append(b.fields[:len(b.fields):len(b.fields)], fields...) {
		f.AddTo(enc)
	}
	ev.Fields(enc.Fields).Str("part", "acme").Msg(e.Message)
	return nil
}

// Sync does nothing; the log does not buffer.
func (b *bridge) Sync() error { return nil }

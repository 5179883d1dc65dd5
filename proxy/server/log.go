package server

import (
	"io"
	"log"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/mask"
)

// LogStyle is how log lines are written.
type LogStyle uint8

// The styles of the log.
const (
	LogJSON     LogStyle = iota // one JSON object a line, for collectors
	LogPlain                    // text
	LogColoured                 // text for a terminal
)

// Log is the operational log of a configuration. Make one with [NewLog]; one that is
// made of a logger alone writes its lines as they are.
type Log struct {
	zerolog.Logger
	masks *lazyMasks // nil: made of a logger alone
}

// NewLog returns the operational log of a configuration on w. Every line passes masking,
// so that neither a configured secret nor what looks like one is written. The level is
// one that config has checked.
func NewLog(cfg *config.Config, w io.Writer, style LogStyle) (Log, error) {
	level, err := zerolog.ParseLevel(cfg.Log.Level)
	if err != nil {
		return Log{Logger: zerolog.Nop()}, err
	}
	if style != LogJSON {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: "15:04:05", NoColor: style == LogPlain}
	}
	masks := &lazyMasks{cfg: cfg}
	out := &maskedWriter{masks: masks, to: w}
	return Log{zerolog.New(out).Level(level).With().Timestamp().Logger(), masks}, nil
}

// of returns the log with the masking of a configuration: its own, when that is the one
// that it was made for.
func (l Log) of(cfg *config.Config) Log {
	if l.masks == nil || l.masks.cfg != cfg {
		l.masks = &lazyMasks{cfg: cfg}
	}
	return l
}

// lazyMasks is the masking of a configuration's results and log lines, which is compiled
// once, when it is first needed.
type lazyMasks struct {
	cfg    *config.Config
	once   sync.Once
	engine *mask.Engine
	err    error
}

// get compiles the rules at the first call, for which all callers wait.
func (m *lazyMasks) get() (*mask.Engine, error) {
	m.once.Do(func() { m.engine, m.err = newMask(m.cfg, m.cfg.Masking) })
	return m.engine, m.err
}

// maskedWriter masks log lines.
type maskedWriter struct {
	masks *lazyMasks
	once  sync.Once
	to    io.Writer
}

// Write implements [io.Writer].
func (m *maskedWriter) Write(line []byte) (int, error) {
	m.once.Do(func() {
		// Rules that do not compile are reported by New, whose report must be
		// seen; what the log says before that holds no call's data.
		if engine, err := m.masks.get(); err == nil {
			m.to = engine.Writer(m.to)
		}
	})
	return m.to.Write(line)
}

// serverLog passes net/http's own messages on, which would go to standard error otherwise,
// in another form and past masking.
func serverLog(l zerolog.Logger) *log.Logger { return log.New(lineWriter{l}, "", 0) }

// lineWriter makes one event of each message; log.Logger hands them over one at a time.
type lineWriter struct{ log zerolog.Logger }

func (w lineWriter) Write(p []byte) (int, error) {
	line := strings.TrimSpace(string(p))
	ev := w.log.Warn()
	if isNoise(line) {
		ev = w.log.Debug()
	}
	ev.Msg(proxy.Clip(line, 500))
	return len(p), nil
}

// masking returns the masking of a configuration's default team: that of its log, where
// the log has one.
func (p *Process) masking(cfg *config.Config, log Log) (*mask.Engine, error) {
	for _, masks := range []*lazyMasks{log.masks, p.log.masks} {
		if masks != nil && masks.cfg == cfg {
			return masks.get()
		}
	}
	p.building("masking")
	return newMask(cfg, cfg.Masking)
}

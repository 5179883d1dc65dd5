package server

import (
	"io"
	"log"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/telemetry"
)

// LogStyle is how log lines are written.
type LogStyle uint8

// The styles of the log.
const (
	LogJSON     LogStyle = iota // one JSON object a line, for collectors
	LogPlain                    // text
	LogColoured                 // text for a terminal
)

// NewLog returns the operational log of a configuration on w. Every line passes masking, so that neither
// a configured secret nor what looks like one is written. The level is one that
// config has checked.
func NewLog(cfg *config.Config, w io.Writer, style LogStyle) (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(cfg.Log.Level)
	if err != nil {
		return zerolog.Nop(), err
	}
	if style != LogJSON {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: "15:04:05", NoColor: style == LogPlain}
	}
	w = &maskedWriter{cfg: cfg, to: w}
	return zerolog.New(w).Level(level).With().Timestamp().Logger(), nil
}

// maskedWriter masks log lines with the rules of a configuration, which it
// compiles when the first line comes.
type maskedWriter struct {
	cfg  *config.Config
	once sync.Once
	to   io.Writer
}

func (m *maskedWriter) Write(line []byte) (int, error) {
	m.once.Do(func() {
		// Rules that do not compile are reported by New, whose report must be
		// seen; what the log says before that holds no call's data.
		if engine, err := newMask(m.cfg, m.cfg.Masking); err == nil {
			m.to = engine.Writer(m.to)
		}
	})
	return m.to.Write(line)
}

// serverLog passes net/http's own messages on.
func serverLog(l zerolog.Logger) *log.Logger { return log.New(lineWriter{l}, "", 0) }

type lineWriter struct{ log zerolog.Logger }

func (w lineWriter) Write(p []byte) (int, error) {
	line := strings.TrimSpace(string(p))
	ev := w.log.Warn()
	if isNoise(line) {
		ev = w.log.Debug()
	}
	ev.Msg(telemetry.Clip(line, 500))
	return len(p), nil
}

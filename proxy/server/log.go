package server

import (
	"io"
	"log"
	"strings"

	"github.com/rs/zerolog"

	"aegis/config"
)

// NewLog returns the operational log on w: JSON lines, or coloured text when
// console is set. The level is one that config has checked.
func NewLog(cfg config.Log, w io.Writer, console bool) (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(cfg.Level)
	if err != nil {
		return zerolog.Nop(), err
	}
	if console {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: "15:04:05"}
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger(), nil
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
	ev.Msg(clip(line, 500))
	return len(p), nil
}

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"aegis/config"
	"aegis/proxy/server"
)

// configFlag adds -c to a command and returns where its value goes.
func configFlag(cmd *cobra.Command) *string {
	file := cmd.Flags().StringP("config", "c", "", "configuration `FILE` (default ./aegis.yaml, then /etc/aegis/aegis.yaml)")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml") // only shell completion depends on it
	return file
}

// findConfig returns the file to load: the named one, or the first of the
// default places that exists.
func findConfig(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	places := []string{"aegis.yaml", "/etc/aegis/aegis.yaml"}
	for _, p := range places {
		if _, err := os.Stat(p); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return p, nil
		}
	}
	return "", misused(errors.New("no configuration: neither ./aegis.yaml nor /etc/aegis/aegis.yaml is there; name one with -c FILE, or try \"aegis demo\""))
}

func loadConfig(named string) (*config.Config, error) {
	file, err := findConfig(named)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load(file)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) {
		return nil, misused(err)
	}
	return cfg, err
}

// newLog returns the log that cfg asks for. Coloured text goes to terminals.
func newLog(cfg *config.Config, w io.Writer) (zerolog.Logger, error) {
	style := server.LogJSON
	switch {
	case isTerminal(w) && cfg.Log.Format != "json":
		style = server.LogColoured
	case cfg.Log.Format == "console":
		style = server.LogPlain
	}
	log, err := server.NewLog(cfg, w, style)
	if err != nil {
		return log, misused(fmt.Errorf("log.level: %w", err))
	}
	return log, nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// build loads a configuration and builds the server that it describes.
func build(named string, stderr io.Writer) (*config.Config, *server.Server, zerolog.Logger, error) {
	cfg, err := loadConfig(named)
	if err != nil {
		return nil, nil, zerolog.Nop(), err
	}
	forPeople := *cfg // the configuration may want JSON, but who calls this reads
	forPeople.Log.Format = "console"
	log, err := newLog(&forPeople, stderr)
	if err != nil {
		return nil, nil, log, err
	}
	srv, err := newServer(cfg, log)
	return cfg, srv, log, err
}

func newServer(cfg *config.Config, log zerolog.Logger) (*server.Server, error) {
	srv, err := server.New(cfg, buildVersion(), log)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) {
		return nil, misused(err) // what cannot be built from a configuration is the configuration's fault
	}
	return srv, err
}

// loadDemoFile loads a file over base, which has what the demo brings itself.
func loadDemoFile(file string, base *config.Config) (*config.Config, error) {
	env := config.OSEnv(filepath.Dir(file))
	env.Base = base
	cfg, err := config.LoadEnv(file, env)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) {
		return nil, misused(err)
	}
	return cfg, err
}

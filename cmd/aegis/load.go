package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"aegis/config"
	"aegis/proxy/server"
)

// configFlag adds -c to a command and returns where its value goes. Every command has
// the same flag, also those that need no configuration, so that a script can pass it to
// all of them.
func configFlag(cmd *cobra.Command) *string {
	// The places are named in the help and not given as a default value: which of them
	// counts depends on what exists.
	file := cmd.Flags().StringP("config", "c", "",
		"configuration `FILE` (default ./aegis.yaml, then /etc/aegis/aegis.yaml)")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml") // only shell completion depends on it
	return file
}

// findConfig returns the file to load: the named one, or the first of the
// default places that exists.
func findConfig(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	// The working folder first: who tries a changed copy there must not get the
	// installed one.
	places := []string{"aegis.yaml", "/etc/aegis/aegis.yaml"}
	// One that exists and cannot be read is used, so that its error is seen: silence would
	// look as if the file were in force.
	for _, p := range places {
		if _, err := os.Stat(p); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return p, nil
		}
	}
	return "", misused(errors.New("no configuration: neither ./aegis.yaml nor /etc/aegis/aegis.yaml is there; " +
		"name one with -c FILE, or try \"aegis demo\""))
}

// loadConfig loads the configuration of a command. It reads files and variables that
// secrets name, and asks no other machine.
func loadConfig(named string) (*config.Config, error) {
	file, err := findConfig(named)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load(file)
	return cfg, blamed(err)
}

// withConfig gives a command -c, and makes it do its work with the configuration. The
// configuration is loaded when the command runs, not when it is made: every command is
// made on each start, for the help.
func withConfig(cmd *cobra.Command, work func(cmd *cobra.Command, args []string, cfg *config.Config) error) {
	file := configFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		// Problems of the file come before those of the arguments that depend on it,
		// such as the name of a team.
		cfg, err := loadConfig(*file)
		if err != nil {
			return err
		}
		return work(cmd, args, cfg)
	}
}

// withServer is withConfig for a command that needs all that is built from the
// configuration. Nothing is opened for it; see [server.Dry].
func withServer(cmd *cobra.Command, work func(*cobra.Command, []string, *config.Config, *server.Server) error) {
	withConfig(cmd, func(cmd *cobra.Command, args []string, cfg *config.Config) error {
		srv, err := dryServer(cfg, "", cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		defer srv.Close()
		return work(cmd, args, cfg, srv)
	})
}

// loadOrDefault loads a configuration, or returns the defaults when no file is named
// and none is in the default places. A named file that is missing is still an error:
// who names one does not mean the defaults.
func loadOrDefault(named string) (*config.Config, error) {
	file, err := findConfig(named)
	if err != nil {
		return config.Default(), nil
	}
	return loadConfig(file)
}

// blamed marks an error as one of the configuration. Problems stay as they are: they have
// lines.
func blamed(err error) error {
	if _, problems := errors.AsType[config.Problems](err); problems || err == nil {
		return err
	}
	return misused(err)
}

// newLog returns the log that cfg asks for. Coloured text goes to terminals.
func newLog(cfg *config.Config, w io.Writer) (server.Log, error) {
	// Collectors read standard error of a service, and people that of a terminal;
	// "auto" tells them apart.
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

// isTerminal reports whether w is a terminal. Other character devices, such as
// /dev/null, count as one, which only costs them colours. The test of the mode needs no
// system call of each platform.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// dryServer builds the server of a configuration for a command that only looks at it.
// Its log is for the person who calls it, whatever the configuration says; level is ""
// for the configuration's.
func dryServer(cfg *config.Config, level string, stderr io.Writer) (*server.Server, error) {
	// A copy: the configuration itself is printed by "aegis check --print", and must be
	// as the file says.
	forPeople := *cfg
	forPeople.Log.Format = "console"
	if level != "" {
		forPeople.Log.Level = level
	}
	log, err := newLog(&forPeople, stderr)
	if err != nil {
		return nil, err
	}
	return newServer(server.Dry, cfg, log)
}

// building is called when a server is built, and what it returns at the end. Only main sets
// it, as it changes the process.
var building = func() (done func()) { return func() {} }

// collectLess is [building] for a process of its own. Most of what a start allocates stays:
// collecting garbage from 4 MB of heap on, as it grows, takes a quarter of the time and frees
// little.
func collectLess() (done func()) {
	before := debug.SetGCPercent(400)
	if os.Getenv("GOGC") == "" {
		before = servingGC
	}
	return func() { debug.SetGCPercent(before) }
}

// servingGC is GOGC while Aegis serves, unless the environment sets one. With Go's own 100 some
// 20 MB that stay after a start make collections so frequent that calls in parallel pay 3 % more
// processor time.
const servingGC = 130

// newServer opens what the server of a configuration needs, with [server.Open] or
// [server.Dry], and builds it. Closing the server closes all of it. What cannot be built from a
// configuration is the configuration's fault, and what cannot be opened is not.
func newServer(open func(*config.Config, string, server.Log) (*server.Process, error), cfg *config.Config,
	log server.Log) (*server.Server, error) {
	defer building()()
	p, err := open(cfg, buildVersion(), log)
	if err != nil {
		return nil, unbuilt(err)
	}
	srv, err := server.New(p, cfg, log)
	if err != nil {
		// server.New has no effect outside itself, so that the process is all that must
		// be undone.
		p.Close()
		return nil, unbuilt(err)
	}
	return srv, nil
}

// unbuilt marks an error of building a server as the configuration's, unless it says what it
// is.
func unbuilt(err error) error {
	if _, unopened := errors.AsType[*server.OpenError](err); unopened {
		return err
	}
	return blamed(err)
}

// printJSON prints v indented. Without escapes, < > and & are printed as they are; output
// that had them escaped in its first version keeps them so.
func printJSON(w io.Writer, v any, escapes bool) error {
	// Two spaces, as jq prints: people read these outputs too.
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(escapes)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// readBounded reads no more than a bound. It reads one byte beyond it, to tell an input that
// is too large from one that is just as large; tooLarge is a format for the bound in MiB.
func readBounded(r io.Reader, bound int64, tooLarge string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, bound+1))
	if err == nil && int64(len(data)) > bound {
		err = fmt.Errorf(tooLarge, bound>>20)
	}
	return data, err
}

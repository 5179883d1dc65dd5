package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"aegis/cmd/aegis/internal/setup"
)

// newSetup returns "aegis setup", whose errors get the exit codes of this program.
func newSetup() *cobra.Command {
	root := setup.New(setup.Program{
		ConfigFlag: configFlag, Load: loadConfig, LocalAddr: localAddr,
		Check: func(file string) error {
			cfg, err := loadConfig(file)
			if err != nil {
				return err
			}
			srv, err := dryServer(cfg, "", io.Discard)
			if err == nil {
				srv.Close()
			}
			return err
		},
	})
	for _, cmd := range append(root.Commands(), root) {
		work := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return coded(work(cmd, args)) }
	}
	return root
}

// coded gives an error of setup its exit code. Errors of this program's own functions have
// one already.
func coded(err error) error {
	var usage *setup.UsageError
	var known *failure
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &usage):
		return misused(err)
	default:
		return failed(err)
	}
}

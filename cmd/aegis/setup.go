package main

import (
	"io"

	"github.com/spf13/cobra"

	"aegis/cmd/aegis/internal/setup"
)

// newSetup returns "aegis setup" with what it needs of this program.
func newSetup() *cobra.Command {
	return setup.New(setup.Program{
		ConfigFlag: configFlag, Load: loadConfig, LocalAddr: localAddr,
		// It is what "aegis check" does: a file that setup wrote must serve, and its
		// warnings are not for this moment.
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
}

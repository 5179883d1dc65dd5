// Package setup is the command "aegis setup": it writes a first configuration, makes the
// OAuth application in Gitea, and connects MCP clients.
package setup

import (
	"github.com/spf13/cobra"

	"aegis/config"
)

// Program is what the command needs of the program that it is part of. Every field is
// required. It comes from outside because the program imports this package, and not the
// other way round.
type Program struct {
	// ConfigFlag adds -c to a command and returns where its value goes.
	ConfigFlag func(*cobra.Command) *string
	// Load loads a configuration file; "" stands for the default places.
	Load func(file string) (*config.Config, error)
	// Check loads a configuration file and builds all that it describes, without serving it.
	// Its error holds config.Problems where the file is at fault.
	Check func(file string) error
	// LocalAddr turns an address to listen on into one to connect to.
	LocalAddr func(listen string) string
}

// UsageError is a wrong command line. The other errors of these commands, but for those
// of Program's functions, mean that a right command could not be carried out. The
// program decides the exit code by it, for its own commands too.
type UsageError struct {
	// Err says which flag is wrong and what it may be.
	Err error
}

// Error returns the text of Err alone.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UsageError) Unwrap() error { return e.Err }

func misused(err error) error { return &UsageError{err} }

//go:build nodemo

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// newDemo says where the demo is: container images are built without it, which
// keeps them small.
func newDemo() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Try Aegis with a built-in Gitea (not in this build)",
		RunE: func(*cobra.Command, []string) error {
			return misused(errors.New("this build has no built-in Gitea (tag nodemo); " +
				"use a release's program or package, or go run ./cmd/aegis demo"))
		},
	}
}

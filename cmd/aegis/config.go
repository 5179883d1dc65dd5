package main

import (
	"github.com/spf13/cobra"

	"aegis/config"
)

// newConfig groups help for writing the file. The schema is generated from the same
// structs that load it, so that editors and Aegis agree. It is embedded in the program,
// so that it is that of this version.
func newConfig() *cobra.Command {
	schema := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration file",
		Long: `Prints the JSON Schema of aegis.yaml, for editors that check and complete YAML.
Save it and point to it in the first line of the file:

  # yaml-language-server: $schema=./aegis.schema.json`,
		Example: "  aegis config schema > aegis.schema.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(config.Schema())
			return err
		},
	}
	_ = configFlag(schema) // accepted everywhere; this command needs none
	return group("config", "Help with the configuration file", "", schema)
}

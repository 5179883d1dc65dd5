package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"aegis/config"
	"aegis/proxy/catalog"
	"aegis/proxy/server"
)

// newTools returns "aegis tools". The Gitea of the configuration is not needed: which
// tools exist is decided by the catalog and the file alone.
func newTools() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools that clients see",
		Long: `Lists what MCP clients of this configuration see, sorted by name. Gitea is not
asked. Without any configuration file the defaults apply: every tool.

--json prints one JSON array with everything known of each tool. --cost prints
how much of a model's context the list takes, by domain, in both modes and for
each preset.`,
		Example: "  aegis tools\n  aegis tools -c aegis.yaml --json\n  aegis tools --cost",
	}
	file := configFlag(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print a JSON array")
	cost := cmd.Flags().Bool("cost", false, "print bytes and estimated tokens per domain, per preset and in all")
	team := cmd.Flags().String("team", "", "the tools of this `TEAM` instead of the default endpoint's")
	cmd.MarkFlagsMutuallyExclusive("json", "cost")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := loadOrDefault(*file)
		if err != nil {
			return err
		}
		if cfg.Gitea.URL == nil { // the defaults have no address, and a server is not built without one
			cfg.Gitea.URL = &config.URL{URL: url.URL{Scheme: "http", Host: "127.0.0.1:3000"}}
		}
		// At level warn, since the notes of a start are not what was asked for.
		srv, err := dryServer(cfg, "warn", cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		defer srv.Close()
		sel, ok := srv.Team(*team)
		if !ok {
			return misused(fmt.Errorf("the configuration has no team %q; \"aegis check\" lists them", *team))
		}
		switch out := cmd.OutOrStdout(); {
		case *asJSON:
			return printToolsJSON(out, sel)
		case *cost:
			return printCost(out, srv, sel)
		default:
			return printTools(out, sel)
		}
	}
	return cmd
}

// printTools prints a table in the order of the names.
func printTools(w io.Writer, sel *catalog.Selection) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "TOOL\tRISK\tMETHOD\tPATH\tTITLE")
	for _, t := range sel.Tools() {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", t.Name, t.Risk, t.Method, t.Path, t.Title)
	}
	return tw.Flush()
}

// toolJSON is a tool as "aegis tools --json" prints it; the field names are an
// interface. It is not the catalog's own type with tags: that may change with the code,
// and scripts read this one.
type toolJSON struct {
	Name          string          `json:"name"`
	CanonicalName string          `json:"canonical_name"`
	Version       string          `json:"version"`
	Domain        string          `json:"domain"`
	Title         string          `json:"title"`
	Description   string          `json:"description"`
	OperationID   string          `json:"operation_id"`
	Method        string          `json:"method"`
	Path          string          `json:"path"`
	Risk          string          `json:"risk"`
	Scopes        []string        `json:"scopes"`
	ReadOnly      bool            `json:"read_only"`
	Destructive   bool            `json:"destructive"`
	Idempotent    bool            `json:"idempotent"`
	OpenWorld     bool            `json:"open_world"`
	Paginated     bool            `json:"paginated"`
	Paging        string          `json:"paging"`
	Credentials   bool            `json:"credential_issuing"`
	BasicAuthOnly bool            `json:"basic_auth_only"`
	Deprecated    bool            `json:"deprecated"`
	ReplacedBy    string          `json:"replaced_by"`
	InputSchema   json.RawMessage `json:"input_schema"`
	OutputSchema  json.RawMessage `json:"output_schema"`
	Example       json.RawMessage `json:"example,omitempty"`
}

// printToolsJSON prints everything that is known of each tool.
func printToolsJSON(w io.Writer, sel *catalog.Selection) error {
	// Not nil: without tools the output is an empty array, and never null.
	list := []toolJSON{}
	for _, t := range sel.Tools() {
		list = append(list, toolJSON{
			Name: t.Name, CanonicalName: t.CanonicalName, Version: t.Version, Domain: t.Domain,
			Title: t.Title, Description: t.Description, OperationID: t.OperationID, Method: t.Method, Path: t.Path,
			Risk: t.Risk.String(), Scopes: append([]string{}, t.Scopes...), // never null
			ReadOnly: t.ReadOnly, Destructive: t.Destructive, Idempotent: t.Idempotent, OpenWorld: t.OpenWorld,
			Paginated: t.Paging == "page" || t.Paging == "per_page", Paging: string(t.Paging),
			Credentials: t.CredentialIssuing, BasicAuthOnly: t.BasicAuthOnly, Deprecated: t.Deprecated,
			ReplacedBy: t.ReplacedBy, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Example: t.Example,
		})
	}
	return printJSON(w, list, false)
}

// What many clients bear; see the warning at the start of serve. Some cut the list
// there without a word, so that tools are missing although they are enabled.
const manyTools = 128

// printCost prints what the list of this configuration costs in both modes, and
// what the presets would.
func printCost(w io.Writer, srv *server.Server, sel *catalog.Selection) error {
	// Both modes are counted whatever the configuration says: the command is there to
	// choose between them.
	full, search := sel.InMode("full").Cost(), sel.InMode("search").Cost().Total
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "domain\ttools\tbytes\ttokens\ttokens/tool\t")
	for _, d := range slices.Sorted(maps.Keys(full.Domains)) {
		c := full.Domains[d]
		printCostLine(tw, d, c.Tools, c.Bytes, c.Tokens)
	}
	printCostLine(tw, "total, mode full", full.Total.Tools, full.Total.Bytes, full.Total.Tokens)
	printCostLine(tw, "total, mode search", search.Tools, search.Bytes, search.Tokens)
	_ = tw.Flush() // what cannot be written now cannot be written at the end either
	fmt.Fprintln(w)
	fmt.Fprintln(tw, "preset, mode full\ttools\tbytes\ttokens\ttokens/tool\t")
	for _, p := range srv.PresetCosts() {
		printCostLine(tw, p.Name, p.Tools, p.Bytes, p.Tokens)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	return printCostNotes(w, sel)
}

// printCostNotes prints what clients do with such a list.
func printCostNotes(w io.Writer, sel *catalog.Selection) error {
	// Clients put the name of the server before that of a tool, and some cut or refuse
	// what becomes too long.
	longest, total := "", sel.Cost().Total
	for _, t := range sel.Tools() {
		if len(t.Name) > len(longest) {
			longest = t.Name
		}
	}
	_, err := fmt.Fprintf(w, "\nThis configuration lists %d tools, about %d tokens for current models. "+
		"The longest name is\n%s (%d characters); clients that prefix names with the server's cut at 60 to 64.\n",
		total.Tools, total.Tokens, longest, len(longest))
	if total.Tools > manyTools {
		fmt.Fprintf(w, "warning: some clients stop at %d tools; use tools.mode: search, or toolsets.\n", manyTools)
	}
	return err
}

// printCostLine prints a row. Its average may be of no tools at all.
func printCostLine(w io.Writer, name string, tools, bytes, tokens int) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t\n", name, tools, bytes, tokens, tokens/max(tools, 1))
}

package catalog_test

import (
	"encoding/json"
	"testing"

	"aegis/config"
)

// TestOffersAreInTheSchema: what a tool says of its own arguments is what its schemas list, with
// and without the argument for acting as others.
func TestOffersAreInTheSchema(t *testing.T) {
	t.Parallel()
	cfg := config.Default().Tools
	cfg.Raw = true
	sel, problems := builtin(t).Select(cfg)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	plain, sudo := sel.Tools(), sel.SudoTools()
	if len(plain) == 0 || len(plain) != len(sudo) {
		t.Fatal(len(plain), len(sudo))
	}
	for i, tool := range plain {
		for as, raw := range map[string]json.RawMessage{"full": tool.InputSchema, "listed": tool.ListSchema,
			"sudo": sudo[i].InputSchema, "sudo, listed": sudo[i].ListSchema} {
			var schema struct {
				Properties map[string]json.RawMessage
				Required   []string
			}
			if err := json.Unmarshal(raw, &schema); err != nil {
				t.Fatalf("%s, %s: %v", tool.Name, as, err)
			}
			_, fields := schema.Properties["fields"]
			_, cursor := schema.Properties["cursor"]
			_, acts := schema.Properties["sudo"]
			if fields != tool.Offers.Fields || cursor != tool.Offers.Cursor || acts != (as[0] == 's') {
				t.Errorf("%s, %s: fields %v, cursor %v, sudo %v; offers %+v", tool.Name, as, fields, cursor, acts,
					tool.Offers)
			}
			for _, name := range schema.Required {
				if _, ok := schema.Properties[name]; !ok {
					t.Errorf("%s, %s: %s is required and not there", tool.Name, as, name)
				}
			}
		}
	}
}

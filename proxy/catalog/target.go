package catalog

import (
	"encoding/json"

	"aegis/proxy"
)

// Target returns the tool that a call of this name with these arguments means:
// the inner one of gitea_call_tool, and for the raw tool the operation that its
// method and path reach. It is nil for a call that will be refused, and for the
// tools that ask Gitea nothing. A tool without OperationID is a route that the
// catalog lacks.
func (sel *Selection) Target(name string, args json.RawMessage) *proxy.Tool {
	if sel.mode == "search" && isMeta(name) {
		if name != callName {
			return nil
		}
		outer, _, err := sel.set.validate(metaTools()[callName], args, grants{})
		if err != nil {
			return nil
		}
		name, _ = outer["name"].(string)
		if args, err = innerArguments(args); err != nil {
			return nil
		}
	}
	t, err := sel.operation(name)
	if err != nil {
		return nil
	}
	if t != sel.raw {
		return t
	}
	// Whether they may be given is for the call itself; here only the route matters.
	raw, _, err := sel.set.validate(t, args, grants{sudo: true, code: true})
	if err != nil {
		return nil
	}
	if t, _, _, err = sel.rawTarget(raw); err != nil {
		return nil
	}
	return t
}

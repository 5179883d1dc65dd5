package catalog

import (
	"context"
	"maps"
	"slices"
	"strings"

	"aegis/config"
	"aegis/proxy"
)

// Set returns the set that was selected from.
func (sel *Selection) Set() *Set { return sel.set }

// Len returns the number of enabled operations, listed or not.
func (sel *Selection) Len() int { return len(sel.enabled) }

// Tools returns what tools/list shows, sorted by name: every enabled operation
// and the raw tool in full mode; the three search tools, the raw tool and the
// pinned ones in search mode.
func (sel *Selection) Tools() []*proxy.Tool {
	out := make([]*proxy.Tool, 0, len(sel.names)+1)
	for _, n := range sel.names {
		if sel.mode != "search" || sel.pinned[n] {
			out = append(out, sel.enabled[n])
		}
	}
	if sel.mode == "search" {
		out = slices.AppendSeq(out, maps.Values(metaTools()))
	}
	if sel.raw != nil {
		out = append(out, sel.raw)
	}
	slices.SortFunc(out, func(a, b *proxy.Tool) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// SudoTools is [Selection.Tools] for identities that may act as others: each
// operation also takes the argument sudo. The list is made once, on demand.
func (sel *Selection) SudoTools() []*proxy.Tool { return sel.sudo() }

func (sel *Selection) sudoTools() []*proxy.Tool {
	list := sel.Tools()
	for i, t := range list {
		// They send nothing to Gitea; the inner call of gitea_call_tool takes sudo.
		if isMeta(t.Name) {
			continue
		}
		with, none := *t, func(string) bool { return false }
		with.InputSchema = edited(t.InputSchema, "sudo", sudoOption.full, none)
		if t.ListSchema != nil {
			with.ListSchema = edited(t.ListSchema, "sudo", sudoOption.full, none)
		}
		list[i] = &with
	}
	return list
}

// Lookup returns the enabled tool that is called exactly name. Any other name,
// be it hidden, misspelled or made up, gets the same error; what it suggests
// comes from the enabled tools alone.
func (sel *Selection) Lookup(name string) (*proxy.Tool, error) {
	if sel.mode == "search" && isMeta(name) {
		return metaTools()[name], nil
	}
	return sel.operation(name)
}

// operation is Lookup without the tools of search mode.
func (sel *Selection) operation(name string) (*proxy.Tool, error) {
	if t := sel.enabled[name]; t != nil {
		return t, nil
	}
	if sel.raw != nil && name == rawName {
		return sel.raw, nil
	}
	return nil, sel.unknownTool(name)
}

// harmless reports whether a tool may be proposed for a name that is not known. A
// model may follow the proposal at once, so a tool that destroys things is only
// proposed for what is nearly its own name: who asks for a comparison or a transfer
// does not mean a deletion.
func (sel *Selection) harmless(name, near string) bool {
	return !sel.enabled[near].Destructive || config.Distance(name, near, 3) < 3
}

// unknownTool is the error of a name that is none here. It is the same for tools that
// exist elsewhere: what a team may not use must not be probed for.
func (sel *Selection) unknownTool(name string) error {
	text := "unknown tool"
	if near := config.Nearest(name, sel.names); near != "" && sel.harmless(name, near) {
		text += "; did you mean " + near + "?"
	} else if sel.mode == "search" {
		text += "; " + searchName + " finds the tools that are available"
	} else {
		text += "; tools/list names the tools that are available"
	}
	return proxy.NewError(proxy.KindUnknownTool, text, nil)
}

// Stage returns the catalog's place in the chain: it sets the call's tool,
// arguments and options, and what they mean (Op, Wire, Target), and answers the
// search tools itself.
func (sel *Selection) Stage() proxy.Stage {
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			if sel.mode == "search" && isMeta(c.Name) {
				return sel.meta(ctx, c, next)
			}
			return sel.dispatch(ctx, c, next)
		})
	}
}

// dispatch resolves one operation or the raw tool and sends the call on. The tools of
// search mode end here too, so a call through them meets the same checks as a direct one.
func (sel *Selection) dispatch(ctx context.Context, c *proxy.Call, next proxy.Handler) (*proxy.Result, error) {
	if err := sel.prepare(c); err != nil {
		return nil, err
	}
	return next.Handle(ctx, c)
}

// prepare fills in what the call means. Nothing is filled in but its tool when it is
// refused. Stages below may rely on the rest being there or the call not reaching them.
func (sel *Selection) prepare(c *proxy.Call) error {
	t, err := sel.operation(c.Name)
	if err != nil {
		return err
	}
	// The audit records the tool of a refused call too.
	c.Tool = t
	may := grants{sudo: c.Identity != nil && c.Identity.AllowSudo, code: c.TakesCode}
	args, opts, err := sel.set.validate(t, c.RawArgs, may)
	if err != nil {
		return err
	}
	reached, op, wire := t, t, proxy.Wire{}
	if t == sel.raw {
		if reached, op, wire, err = sel.rawTarget(args); err != nil {
			return err
		}
	}
	if err := tokenless(reached); err != nil {
		return err
	}
	if sel.set.strays(t, args) {
		return proxy.NewError(proxy.KindInvalidArguments,
			"a path argument is a word that Gitea takes for another operation on this route, "+
				"so "+t.Name+" cannot reach an object of that name. Nothing was sent to Gitea.", nil)
	}
	c.Tool, c.Args, c.Options = reached, args, opts
	if t != sel.raw {
		c.Resolve(t)
		return nil
	}
	c.Op, c.Wire = op, wire
	if op != nil {
		c.Target = proxy.TargetOf(op, wire.Values)
	}
	return nil
}

// tokenless refuses what no token opens.
func tokenless(t *proxy.Tool) error {
	if !t.BasicAuthOnly {
		return nil
	}
	return proxy.NewError(proxy.KindBasicAuthOnly,
		"Gitea accepts only a user name and password on this route, never a token, so "+t.Name+
			" cannot work through Aegis. Use the web page Settings, Applications instead. Nothing was sent.", nil)
}

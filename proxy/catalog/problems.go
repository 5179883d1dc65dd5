package catalog

import (
	"fmt"
	"strings"
	"unicode"

	"aegis/proxy"
)

// maxProblems bounds the complaints about one call. The error goes to a model, which pays
// for each word, and a client could make thousands of them.
const maxProblems = 10

// problems gathers what is wrong with a call's arguments. Texts name places and rules,
// never values. Values stay out: they may be secrets, and the error goes into logs and to
// the model.
type problems struct {
	list []string
	more int
}

// full reports whether further complaints are only counted.
func (p *problems) full() bool { return len(p.list) >= maxProblems }

// add notes that the value at path breaks a rule. Beyond maxProblems only their number
// is kept: a client may send a list of thousands.
func (p *problems) add(path, what string) {
	if p.full() {
		p.more++
		return
	}
	p.list = append(p.list, path+" "+what)
}

// err returns the problems as one error, nil when there are none.
func (p *problems) err(tool string) error {
	if len(p.list) == 0 {
		return nil
	}
	text := "the arguments do not fit " + tool + ": " + strings.Join(p.list, "; ")
	if p.more > 0 {
		text += fmt.Sprintf("; and %d more", p.more)
	}
	return proxy.NewError(proxy.KindInvalidArguments, text+" (nothing was sent to Gitea)", nil)
}

// show makes a name that the client chose fit to be shown: bounded, and without
// characters that could fake other text.
func show(name string) string {
	var b strings.Builder
	n := 0
	for _, r := range name {
		if n++; n > 40 {
			b.WriteString("…")
			break
		}
		if !unicode.IsPrint(r) || r == '`' || r == unicode.ReplacementChar {
			r = '?'
		}
		b.WriteRune(r)
	}
	if b.Len() == 0 {
		return `""`
	}
	return b.String()
}

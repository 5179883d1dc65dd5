package envelope

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

// Untrusted comes before the data of every result: anyone may have written what
// follows.
const Untrusted = proxy.Untrusted

// Envelope renders results. It is safe for concurrent use; it changes nothing but what it
// remembers of schemas.
type Envelope struct {
	cfg     config.Results
	cursors Cursors
	outputs outputs
}

// New returns an envelope with the bounds of cfg, whose cursors are sealed by
// cursors.
func New(cfg config.Results, cursors Cursors) *Envelope {
	return &Envelope{cfg: cfg, cursors: cursors}
}

// Stage returns the stage that checks a call's cursor and fields before Gitea is
// asked and renders the result after it. It belongs above masking: what it cuts at may
// be the middle of a secret, which masking would then not know. It sets Result.Text, TextBlock,
// Structured and Truncation. Errors are of kind invalid_arguments (a cursor that
// is not this call's, a path that is none), or the next handler's.
func (e *Envelope) Stage() proxy.Stage {
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			e.defaultFields(c) // before the binding, so that a change of the defaults ends cursors
			fields, err := ParseFields(c.Options.Fields)
			if err != nil {
				return nil, err
			}
			to, err := bind(c)
			if err != nil {
				return nil, err
			}
			pos, err := e.cursors.open(to, c.Options.Cursor)
			if err != nil {
				return nil, err
			}
			res, err := next.Handle(ctx, c)
			if err != nil {
				return nil, err
			}
			if err := e.render(c, res, place{to, pos, fields}); err != nil {
				return nil, err
			}
			return res, nil
		})
	}
}

// RenderLocal returns the stage that renders the results which a stage above Gitea made
// itself, such as a search for tools. It leaves rendered ones as they are.
func (e *Envelope) RenderLocal() proxy.Stage {
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			res, err := next.Handle(ctx, c)
			if err != nil || res.Text != nil || res.Reply != nil {
				return res, err
			}
			to, err := bind(c)
			if err != nil {
				return nil, err
			}
			if err := e.render(c, res, place{to: to}); err != nil {
				return nil, err
			}
			return res, nil
		})
	}
}

// defaultFields sets the fields of a call that names none: those configured for
// its tool, or the tool's slim ones when results.slim is on. What a write answers is
// never thinned: it says what has become of the thing.
func (e *Envelope) defaultFields(c *proxy.Call) {
	switch {
	case len(c.Options.Fields) > 0 || !c.Tool.ReadOnly:
	case e.cfg.FieldsDefault[c.Tool.Name] != nil:
		c.Options.Fields = e.cfg.FieldsDefault[c.Tool.Name]
	case e.cfg.Slim:
		c.Options.Fields = c.Tool.Slim
	}
}

// place is where a call begins, what its cursors are bound to, and which of its
// data is wanted; nil fields want all. It is made on the way down.
type place struct {
	to     binding
	pos    position
	fields *jsonscan.Selection
}

// render renders into the call's reply, but for results that carry structured content: those
// are the SDK's to write, which takes the text as such.
func (e *Envelope) render(c *proxy.Call, res *proxy.Result, at place) error {
	if c.Reply != nil && !e.cfg.Structured {
		return e.renderReply(c, res, at)
	}
	data, err := e.data(res, at)
	if err != nil {
		return err
	}
	b := appendHead(make([]byte, 0, len(data)+headRoom), c, res)
	res.Text = append(append(b, data...), '}')
	if e.cfg.Structured {
		if res.TextBlock != nil { // the output schema promises a string
			data = jsonscan.AppendQuote(nil, res.TextBlock)
		}
		// Clients refuse an answer whose structured content breaks the schema that the tool's
		// list has. The text says the same, so nothing is lost without it.
		if c.Stats.SchemaMismatch = e.outputs.mismatch(c.Tool.OutputSchema, data); c.Stats.SchemaMismatch == "" {
			res.Structured = slices.Concat([]byte(`{"data":`), data, []byte{'}'})
		}
	}
	return nil
}

// data returns the bounded data as one JSON value.
func (e *Envelope) data(res *proxy.Result, at place) ([]byte, error) {
	switch res.Kind {
	case proxy.BodyJSON:
		return e.jsonData(res, at)
	case proxy.BodyText:
		return e.textData(res, at), nil
	case proxy.BodyBinary:
		data, unknown, err := project(at.fields, e.binaryData(res, at))
		noteUnknown(res, slices.DeleteFunc(unknown, func(path string) bool { return path == contentMember }))
		return data, err
	case proxy.BodyEmpty:
		noteUnknown(res, at.fields.Paths()) // none of them can be in data without members
		return []byte("null"), nil
	}
	return nil, defect(fmt.Errorf("result of unknown body kind %d", res.Kind))
}

// defect is the error of a result that no stage below may return.
func defect(cause error) *proxy.Error {
	return proxy.NewError(proxy.KindInternal, "internal error", cause)
}

// jsonData projects before it bounds: fields are there to make room, and a cursor counts
// what is left of the data.
func (e *Envelope) jsonData(res *proxy.Result, at place) ([]byte, error) {
	data, unknown, err := project(at.fields, jsonscan.Trim(res.Body))
	if err != nil {
		return nil, err
	}
	cut := e.bound(data, at.pos, res.Items)
	e.noteCut(res, cut, at)
	noteUnknown(res, unknown)
	return cut.data, nil
}

// noteCut says in res what a bound did to its data and how to go on. What a policy took out
// of it before stays counted: both are missing.
func (e *Envelope) noteCut(res *proxy.Result, cut bounded, at place) {
	if cut.changed {
		res.Warnings = append(res.Warnings, changedWarning)
	}
	t := cut.truncation
	if t == nil {
		return
	}
	if cut.next != nil {
		t.Cursor = e.cursors.seal(at.to, *cut.next)
	}
	if res.Truncation != nil {
		t.Removed = res.Truncation.Removed
	}
	res.Truncation = t
}

const changedWarning = "the data changed since this cursor was made: items may repeat or be missing; " +
	"start again without cursor to be sure"

// textData returns a text as a string, or a note in place of the block that has it: a
// string in a string costs a model a backslash or two for each line end and quote.
func (e *Envelope) textData(res *proxy.Result, at place) []byte {
	part := e.textPart(res, at)
	if !e.cfg.TextBlocks {
		return jsonscan.AppendQuote(make([]byte, 0, len(part)+len(part)/8+2), part)
	}
	res.TextBlock = part
	return fmt.Appendf(nil, `{"text":"in the next content item","chars":%d}`, utf8.RuneCount(part))
}

// textPart returns the part of a text that is wanted and fits.
func (e *Envelope) textPart(res *proxy.Result, at place) []byte {
	part, cut := boundText(res.Body, e.cfg.MaxChars, at.pos)
	e.noteCut(res, cut, at)
	noteUnknown(res, at.fields.Paths())
	return part
}

// appendHead writes the envelope up to its data, in its documented key order.
func appendHead(b []byte, c *proxy.Call, res *proxy.Result) []byte {
	b = appendMember(b, `{"identity":{"login":`, c.Identity.Login)
	b = appendMember(b, `,"mode":`, string(c.Identity.Mode))
	if c.Options.Sudo == "" {
		b = append(b, `,"sudo":null}`...)
	} else {
		b = append(appendMember(b, `,"sudo":`, c.Options.Sudo), '}')
	}
	if res.Method != "" { // Aegis's own answers ask nothing of Gitea
		b = appendMember(b, `,"request":{"method":`, res.Method)
		b = append(appendMember(b, `,"path":`, res.Path), '}')
	}
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(res.Status), 10)
	if res.Page != nil {
		b = appendPagination(append(b, `,"pagination":`...), res.Page)
	}
	if res.Truncation != nil {
		b = appendTruncation(append(b, `,"truncation":`...), res.Truncation)
	}
	if len(res.Warnings) > 0 {
		b = appendStrings(append(b, `,"warnings":`...), res.Warnings)
	}
	if res.Method != "" { // last before the data, where a model reads it last
		b = append(b, `,"untrusted_content":"`+Untrusted+`"`...)
	}
	return append(b, `,"data":`...)
}

// appendMember appends before, which ends in a name and its colon, and text as its value.
func appendMember(b []byte, before, text string) []byte {
	return jsonscan.AppendQuote(append(b, before...), text)
}

// appendPagination and appendTruncation write what encoding/json would, without its cost:
// one of them is in most answers.
func appendPagination(b []byte, p *proxy.Pagination) []byte {
	b = fmt.Appendf(b, `{"page":%d,"limit":%d`, p.Page, p.Limit)
	if p.TotalCount != nil {
		b = fmt.Appendf(b, `,"total_count":%d`, *p.TotalCount)
	}
	if p.NextPage != nil {
		b = fmt.Appendf(b, `,"next_page":%d`, *p.NextPage)
	}
	if p.LastPage != nil {
		b = fmt.Appendf(b, `,"last_page":%d`, *p.LastPage)
	}
	return append(b, '}')
}

func appendTruncation(b []byte, t *proxy.Truncation) []byte {
	b = appendMember(b, `{"reason":`, t.Reason)
	if t.Available > 0 {
		b = fmt.Appendf(b, `,"returned":%d,"available":%d`, t.Returned, t.Available)
	}
	if t.At != "" {
		b = appendMember(b, `,"at":`, t.At)
	}
	if t.Removed > 0 {
		b = fmt.Appendf(b, `,"removed":%d`, t.Removed)
	}
	if len(t.Omitted) > 0 {
		b = appendStrings(append(b, `,"omitted":`...), t.Omitted)
	}
	if len(t.UnknownFields) > 0 {
		b = appendStrings(append(b, `,"unknown_fields":`...), t.UnknownFields)
	}
	if t.Cursor != "" {
		b = appendMember(b, `,"cursor":`, t.Cursor)
	}
	return append(b, '}')
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonscan.AppendQuote(b, s)
	}
	return append(b, ']')
}

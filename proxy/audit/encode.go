package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// encode returns the members of r after prev, as {"event":…}. Seq, Time, Prev
// and Hash are not its business. The records of calls are written by hand, as each
// call waits for two of them; the others are rare.
func encode(r *Record) ([]byte, error) {
	var body []byte
	var err error
	if r.Detail == nil {
		body = appendCall(make([]byte, 0, 768), r)
	} else if body, err = encodeAny(r); err != nil {
		return nil, fmt.Errorf("audit record: %w", err)
	}
	if len(body) > maxLine-512 {
		return nil, errors.New("audit record: larger than 64 KiB")
	}
	return body, nil
}

// encodeAny writes any record. What appendCall writes must be the same.
func encodeAny(r *Record) ([]byte, error) {
	return json.Marshal(struct {
		Event     Event     `json:"event"`
		Started   uint64    `json:"started,omitempty"`
		RequestID string    `json:"request_id,omitempty"`
		Identity  *Identity `json:"identity,omitempty"`
		Client    *Client   `json:"client,omitempty"`
		Team      string    `json:"team,omitempty"`
		Call      *Call     `json:"call,omitempty"`
		Result    *Result   `json:"result,omitempty"`
		Detail    *Detail   `json:"detail,omitempty"`
	}{r.Event, r.Started, r.RequestID, r.Identity, r.Client, r.Team, r.Call, r.Result, r.Detail})
}

// members appends the members of an object, with commas between them.
type members struct {
	b    []byte
	some bool // the object has a member already
}

// name appends what stands before a value.
func (m *members) name(name string) {
	if m.some {
		m.b = append(m.b, ',')
	}
	m.some = true
	m.b = append(append(append(m.b, '"'), name...), `":`...)
}

// text appends a member, and optional one that is not empty.
func (m *members) text(name, value string) {
	m.name(name)
	m.b = appendText(m.b, value)
}

func (m *members) optional(name, value string) {
	if value != "" {
		m.text(name, value)
	}
}

// number appends a member, and nonzero one that is not 0.
func (m *members) number(name string, value int64) {
	m.name(name)
	m.b = strconv.AppendInt(m.b, value, 10)
}

func (m *members) nonzero(name string, value int64) {
	if value != 0 {
		m.number(name, value)
	}
}

// open begins an object in the object, close ends it.
func (m *members) open(name string) {
	m.name(name)
	m.b, m.some = append(m.b, '{'), false
}

func (m *members) close() { m.b, m.some = append(m.b, '}'), true }

// appendText appends a JSON string as encoding/json writes it.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// appendCall appends a record without Detail.
func appendCall(b []byte, r *Record) []byte {
	m := members{b: append(b, '{')}
	m.text("event", string(r.Event))
	if r.Started != 0 {
		m.name("started")
		m.b = strconv.AppendUint(m.b, r.Started, 10)
	}
	m.optional("request_id", r.RequestID)
	if id := r.Identity; id != nil {
		m.open("identity")
		m.text("login", id.Login)
		m.text("mode", id.Mode)
		m.optional("token", id.Token)
		m.optional("sudo", id.Sudo)
		m.close()
	}
	if c := r.Client; c != nil {
		m.open("client")
		m.optional("name", c.Name)
		m.optional("version", c.Version)
		m.optional("protocol", c.Protocol)
		m.optional("addr", c.Addr)
		m.close()
	}
	m.optional("team", r.Team)
	m.call(r.Call)
	m.result(r.Result)
	return append(m.b, '}')
}

func (m *members) call(c *Call) {
	if c == nil {
		return
	}
	m.open("call")
	m.text("tool", c.Tool)
	m.optional("operation", c.Operation)
	m.optional("method", c.Method)
	m.optional("path", c.Path)
	m.text("risk", c.Risk)
	if t := c.Target; t != nil {
		m.open("target")
		m.optional("owner", t.Owner)
		m.optional("repo", t.Repo)
		m.optional("org", t.Org)
		m.optional("user", t.User)
		m.nonzero("index", t.Index)
		m.nonzero("id", t.ID)
		m.close()
	}
	if len(c.Arguments) > 0 {
		m.name("arguments")
		for i, a := range c.Arguments {
			m.b = appendText(append(m.b, "[,"[min(i, 1)]), a)
		}
		m.b = append(m.b, ']')
	}
	m.close()
}

func (m *members) result(r *Result) {
	if r == nil {
		return
	}
	m.open("result")
	m.text("outcome", r.Outcome)
	m.number("status", int64(r.Status))
	if r.Withheld {
		m.name("withheld")
		m.b = append(m.b, "true"...)
	}
	m.optional("limiter", r.Limiter)
	m.optional("policy", r.Policy)
	if r.WriteToken {
		m.name("write_token")
		m.b = append(m.b, "true"...)
	}
	m.number("queue_us", r.Queue)
	m.number("upstream_us", r.Upstream)
	m.number("total_us", r.Total)
	m.number("attempts", int64(r.Attempts))
	m.number("bytes_in", r.BytesIn)
	m.number("bytes_out", r.BytesOut)
	m.number("returned_bytes", int64(r.Returned))
	if len(r.MaskHits) > 0 {
		m.open("mask_hits")
		for _, rule := range slices.Sorted(maps.Keys(r.MaskHits)) {
			if m.some {
				m.b = append(m.b, ',')
			}
			m.some = true
			m.b = append(appendText(m.b, rule), ':')
			m.b = strconv.AppendInt(m.b, int64(r.MaskHits[rule]), 10)
		}
		m.close()
	}
	if t := r.Truncation; t != nil {
		m.open("truncation")
		m.text("reason", t.Reason)
		m.number("returned", int64(t.Returned))
		m.number("available", int64(t.Available))
		m.close()
	}
	if o := r.Object; o != nil {
		m.open("object")
		m.text("kind", o.Kind)
		m.nonzero("id", o.ID)
		m.nonzero("number", o.Number)
		m.optional("sha", o.SHA)
		m.optional("url", o.URL)
		m.close()
	}
	m.close()
}

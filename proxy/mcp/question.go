package mcp

import (
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"aegis/proxy"
)

// questionID names the one question of a result; confirmField is what the person
// types into its form.
const (
	questionID   = "confirm"
	confirmField = "confirm"
)

// ask turns a question into a result that needs input: the client shows it to its
// user and repeats the call with the answer (MCP 2026-07-28, multi round-trip
// requests). The form asks for no more than the name of what is at stake, if anything: a
// person who types it has read it.
func (e *endpoint) ask(c *proxy.Call, q *proxy.Question) (*sdk.CallToolResult, error) {
	schema := `{"type":"object","properties":{}}`
	if q.Retype != "" {
		schema = `{"type":"object","properties":{"` + confirmField + `":{"type":"string","title":"Name",` +
			`"description":"Type the name to permit this."}},"required":["` + confirmField + `"]}`
	}
	form := &sdk.ElicitParams{Mode: "form", Message: q.Message, RequestedSchema: json.RawMessage(schema)}
	return &sdk.CallToolResult{
		Meta: e.meta(c, ""), InputRequests: sdk.InputRequestMap{questionID: form}, RequestState: q.State,
	}, nil
}

// answerOf returns what the client's user answered, nil when the call is no answer.
// A state without an answer, or an answer of another kind, permits
// nothing.
func answerOf(p *sdk.CallToolParamsRaw) *proxy.Answer {
	if p.RequestState == "" && p.InputResponses == nil {
		return nil
	}
	r := &proxy.Answer{State: p.RequestState}
	answer, ok := p.InputResponses[questionID].(*sdk.ElicitResult)
	if !ok || answer == nil || answer.Action != "accept" {
		return r
	}
	r.Accepted = true
	r.Typed, _ = answer.Content[confirmField].(string)
	return r
}

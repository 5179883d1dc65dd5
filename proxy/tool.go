package proxy

import (
	"encoding/json"
	"slices"
	"time"
)

// Risk is how much harm a wrong call can do.
type Risk uint8

// The risk classes, in rising order.
const (
	R0 Risk = iota // public or harmless read
	R1             // private read
	R2             // reversible write
	R3             // destructive or hard to undo
	R4             // administers the instance or hands out credentials
)

var risks = [...]string{"R0", "R1", "R2", "R3", "R4"}

// String returns "R0" to "R4".
func (r Risk) String() string {
	if r > R4 {
		return "R?"
	}
	return risks[r]
}

// ParseRisk reads "R0" to "R4".
func ParseRisk(s string) (Risk, bool) {
	i := slices.Index(risks[:], s)
	return Risk(max(i, 0)), i >= 0
}

// In is where an argument goes in the HTTP request.
type In string

// The places of arguments.
const (
	InPath  In = "path"
	InQuery In = "query"
	InBody  In = "body"  // one property of the JSON body
	InWhole In = "whole" // the whole body: a JSON value, or text for text/plain operations
	InForm  In = "form"  // a form field
	InFile  In = "file"  // an uploaded file, base64 in the arguments
)

// Encoding is how a string argument becomes its wire value.
type Encoding string

// The encodings of arguments.
const (
	EncodeNone   Encoding = ""       // as it is
	EncodeBase64 Encoding = "base64" // UTF-8 text is sent as the base64 of its bytes
)

// Paging is how an operation divides its answer.
type Paging string

// The ways of paging.
const (
	PagingNone    Paging = ""         // one answer, no list
	PagingPage    Paging = "page"     // page and limit
	PagingPerPage Paging = "per_page" // page and per_page (git trees)
	PagingIgnored Paging = "ignored"  // a list that comes whole, whatever page is asked for
)

// Tool is an operation as an MCP client sees it. Tools are built once and
// never change; everyone may share them.
type Tool struct {
	// Name is the wire name, gitea_<domain>_<action>, at most 45 characters.
	Name string
	// CanonicalName is Name with dots: gitea.<domain>.<action>.
	CanonicalName string
	// Version is the tool's semantic version.
	Version string
	// Domain is one of the 14 tool domains.
	Domain string
	// Title is a short name for people; Description tells a model when and
	// how to use the tool.
	Title, Description string

	// OperationID is Gitea's name of the operation; Method and Path (a
	// template below /api/v1) are its route.
	OperationID, Method, Path string
	// Params are the arguments that reach Gitea, in wire order.
	Params []Param
	// Consumes is the request body's media type; "" without a body.
	Consumes string
	// Produces is the media type that Gitea promises; "" without a body.
	Produces string

	// Risk, Scopes (Gitea token scopes, all needed) and the MCP annotations.
	Risk                                         Risk
	Scopes                                       []string
	ReadOnly, Destructive, Idempotent, OpenWorld bool
	Paging                                       Paging
	// CredentialIssuing marks results that hand out a new credential.
	CredentialIssuing bool
	// BasicAuthOnly marks routes that no token opens.
	BasicAuthOnly bool
	// Deprecated marks operations on their way out; ReplacedBy names the tool
	// to use instead.
	Deprecated bool
	ReplacedBy string
	// Timeout bounds a call; 0 means the configured default.
	Timeout time.Duration

	// InputSchema is the JSON Schema (2020-12) of the arguments, OutputSchema
	// that of the result's data.
	InputSchema, OutputSchema json.RawMessage
	// ListSchema is InputSchema as tools/list sends it: without the bounds that
	// only Aegis checks and the words about arguments that mean the same
	// everywhere. Nil: InputSchema is sent.
	ListSchema json.RawMessage
	// Offers are the arguments of Aegis's own that the tool takes.
	Offers Offers
	// Slim are the paths of the result's data that results.slim keeps; nil keeps
	// all.
	Slim []string
	// Example holds the arguments of one valid call; nil for most tools.
	Example json.RawMessage
}

// Offers are arguments that Aegis answers itself, beside those of the operation.
type Offers struct {
	Fields bool // paths of the result's data to keep
	Cursor bool // to go on with a truncated result
}

// Class is what a tool does to Gitea, in the words of limits and metrics.
type Class string

// The classes of tools.
const (
	ClassRead        Class = "read"        // changes nothing
	ClassWrite       Class = "write"       // changes something and can be undone
	ClassDestructive Class = "destructive" // deletes, is hard to undo or administers the instance
)

// Class returns the tool's class.
func (t *Tool) Class() Class {
	switch {
	case t.ReadOnly:
		return ClassRead
	case t.Destructive || t.Risk >= R3:
		return ClassDestructive
	}
	return ClassWrite
}

// Param is one argument of a tool and its place in the HTTP request.
type Param struct {
	// Name is the argument's name; Wire is its name in the request. They
	// differ where two places of one operation use the same wire name.
	Name, Wire string
	In         In
	Required   bool
	// Wildcard marks path parameters whose value keeps its slashes.
	Wildcard bool
	// Multi marks query arrays that repeat the key per value (Swagger
	// collectionFormat multi); otherwise arrays are joined with commas.
	Multi bool
	// Encode says how a string argument becomes the wire value. Two body
	// arguments may share a Wire name when one of them is encoded: "content"
	// (base64, as Gitea wants it) and "content_text" (EncodeBase64). Then
	// exactly one of them must be given.
	Encode Encoding
	// Fixed is the value that Aegis fills in, for arguments that a team's binding
	// took away from its callers; to them the argument does not exist. "": none.
	Fixed string
	// Schema constrains the value.
	Schema *Schema
}

// Schema is the part of JSON Schema that tool arguments use, ready for
// validation. Zero values mean "no constraint".
type Schema struct {
	// Type is string, integer, number, boolean, array or object; "" is any value.
	Type                 string
	Format               string
	Enum                 []string
	Pattern              string
	MinLength, MaxLength int // runes; MaxLength 0 is unbounded
	Minimum, Maximum     *int64
	Items                *Schema // of arrays, and of the values of open objects; nil is any
	MinItems, MaxItems   int
	Properties           []Property // of objects, in order
	// Open permits properties beyond Properties (maps).
	Open bool
}

// Property is one member of an object schema.
type Property struct {
	Name     string
	Required bool
	// Wire is the member's name in the request, "" when it is Name; Encode is
	// as in [Param].
	Wire   string
	Encode Encoding
	Schema *Schema
}

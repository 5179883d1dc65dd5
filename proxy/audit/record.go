package audit

import (
	"time"

	"aegis/proxy"
)

// Event names what a record is about. The names are an interface.
type Event string

// The events.
const (
	// Start is the begin of a run of the process.
	Start Event = "start"
	// Stop is its orderly end.
	Stop Event = "stop"
	// ConfigReloaded is a changed configuration that took effect.
	ConfigReloaded Event = "config_reloaded"
	// ConfigRefused is a changed configuration that was not right and is not used.
	ConfigRefused Event = "config_refused"

	// ToolCallStarted is written before Gitea is asked.
	ToolCallStarted Event = "tool_call_started"
	// ToolInvocation is written once the outcome is known, before the client
	// learns it: exactly one for every call, whatever became of it.
	ToolInvocation Event = "tool_invocation"

	// BearerRefused is a request without a valid token, with the reason.
	BearerRefused Event = "bearer_refused"
	// AccessRefused is an identity that is no member of the endpoint.
	AccessRefused Event = "access_refused"
	// Login is a person who signed in through Gitea.
	Login Event = "login"
	// Consent is a person's permission for a client.
	Consent Event = "consent"
	// CodeRefused is an authorization code that came a second time, or with a wrong
	// proof; a second time ends the grant.
	CodeRefused Event = "code_refused"
	// TokenIssued is a new pair of tokens for a client.
	TokenIssued Event = "token_issued"
	// TokenRefreshed is a pair of tokens that was exchanged for a new one.
	TokenRefreshed Event = "token_refreshed"
	// RefreshReused is a refresh token that was shown a second time.
	RefreshReused Event = "refresh_reused"
	// TokenRevoked is a token that is no longer valid.
	TokenRevoked Event = "token_revoked"

	// Checkpoint is a signed note about the record before it.
	Checkpoint Event = "checkpoint"
	// LogRecovered is an outage or a repair of the log itself.
	LogRecovered Event = "log_recovered"
	// LogCut is a log that was found shorter than a signed checkpoint says.
	LogCut Event = "log_cut"
	// LogPruned is the removal of rotated files by audit.keep.
	LogPruned Event = "log_pruned"
	// SinkGap is what a second sink missed.
	SinkGap Event = "sink_gap"
)

// Record is one line of the log. Numbers and times are never absent where they
// mean something; texts and objects that do not apply are left out.
//
// No record holds the value of an argument, except the names and numbers in
// [Target]; none holds a body or a credential.
type Record struct {
	// Seq numbers the records from 1 without gaps, through rotation and restarts.
	Seq uint64 `json:"seq"`
	// Time is when the record was made: UTC, nanoseconds.
	Time time.Time `json:"time"`
	// Prev is the hash of the record before, 64 zeros for the first.
	Prev string `json:"prev"`
	// Event says what the record is about.
	Event Event `json:"event"`
	// Started is the sequence number of the tool_call_started record that a
	// tool_invocation completes; absent when the call was refused before it.
	Started uint64 `json:"started,omitempty"`
	// RequestID names the HTTP request, in the access log and the answer too.
	RequestID string `json:"request_id,omitempty"`
	// Identity is on whose behalf.
	Identity *Identity `json:"identity,omitempty"`
	// Client is the MCP client.
	Client *Client `json:"client,omitempty"`
	// Team is the endpoint; absent for the default one.
	Team string `json:"team,omitempty"`
	// Call describes the tool and its target. A call of a tool that does not
	// exist has none: the name is the client's text.
	Call *Call `json:"call,omitempty"`
	// Result describes how a call ended.
	Result *Result `json:"result,omitempty"`
	// Detail describes the other events.
	Detail *Detail `json:"detail,omitempty"`
	// Hash is the SHA-256 of the line without this member, in hexadecimal.
	Hash string `json:"hash"`
}

// Identity is on whose behalf a call ran.
type Identity struct {
	// Login is the Gitea user.
	Login string `json:"login"`
	// Mode is "static" or "oauth".
	Mode string `json:"mode"`
	// Token is the configured name of the static token.
	Token string `json:"token,omitempty"`
	// Sudo is the user that an administrator's token acted as.
	Sudo string `json:"sudo,omitempty"`
}

// Client is the MCP client of a call. Name and Version are its own words,
// masked and bounded; they prove nothing.
type Client struct {
	// Name is what the client calls itself.
	Name string `json:"name,omitempty"`
	// Version is what it calls its version.
	Version string `json:"version,omitempty"`
	// Protocol is the MCP version that the request speaks.
	Protocol string `json:"protocol,omitempty"`
	// Addr is the network address without port, as trusted proxies give it.
	Addr string `json:"addr,omitempty"`
}

// Call describes a tool and what it was pointed at.
type Call struct {
	// Tool is the tool's name.
	Tool string `json:"tool"`
	// Operation is Gitea's name of it.
	Operation string `json:"operation,omitempty"`
	// Method is the HTTP method of its route.
	Method string `json:"method,omitempty"`
	// Path is the template of its route, never filled in; absent for the raw
	// tool.
	Path string `json:"path,omitempty"`
	// Risk is R0 to R4.
	Risk string `json:"risk"`
	// Target is what the path arguments name.
	Target *Target `json:"target,omitempty"`
	// Arguments are the names of the arguments that were given, sorted.
	Arguments []string `json:"arguments,omitempty"`
}

// Target is what a call is about, as far as its path arguments name it. A text
// that is not a plain name, or that masking takes for a secret, is "[masked]".
type Target struct {
	// Owner is the user or organization that owns the repository.
	Owner string `json:"owner,omitempty"`
	// Repo is the repository's name.
	Repo string `json:"repo,omitempty"`
	// Org is an organization.
	Org string `json:"org,omitempty"`
	// User is a user.
	User string `json:"user,omitempty"`
	// Index is the number of an issue or pull request, the one people see.
	Index int64 `json:"index,omitempty"`
	// ID is the internal number of anything else.
	ID int64 `json:"id,omitempty"`
}

// Result is how a call ended.
type Result struct {
	// Outcome is "ok" or the error's kind.
	Outcome string `json:"outcome"`
	// Status is Gitea's HTTP status, 0 when Gitea was not asked.
	Status int `json:"status"`
	// Withheld is set when Gitea answered and the client did not get the answer,
	// because this record could not be written in time.
	Withheld bool `json:"withheld,omitempty"`
	// Limiter is the bucket that refused the call.
	Limiter string `json:"limiter,omitempty"`
	// Policy is the rule of the team's policy that refused the call.
	Policy string `json:"policy,omitempty"`
	// WriteToken is set when the call ran with the team's write_token, whose user
	// Gitea then shows as the author.
	WriteToken bool `json:"write_token,omitempty"`
	// Queue is the time from the request's head to the call's entry into the
	// chain, in microseconds.
	Queue int64 `json:"queue_us"`
	// Upstream is the time spent waiting for Gitea, in microseconds.
	Upstream int64 `json:"upstream_us"`
	// Total is the time from the request's head to this record, its own writing
	// not included, in microseconds.
	Total int64 `json:"total_us"`
	// Attempts is how many requests Gitea got.
	Attempts int `json:"attempts"`
	// BytesIn is the body bytes received from Gitea.
	BytesIn int64 `json:"bytes_in"`
	// BytesOut is the body bytes sent to Gitea.
	BytesOut int64 `json:"bytes_out"`
	// Returned is the size of the text that the client got, 0 for errors.
	Returned int `json:"returned_bytes"`
	// MaskHits counts masked secrets by rule.
	MaskHits map[string]int `json:"mask_hits,omitempty"`
	// Truncation is set when a bound cut the data.
	Truncation *Truncation `json:"truncation,omitempty"`
	// Object is what a write made or changed.
	Object *Object `json:"object,omitempty"`
}

// Truncation says what a bound cut.
type Truncation struct {
	// Reason is "items", "chars" or "fields".
	Reason string `json:"reason"`
	// Returned is how many items, characters or fields were returned.
	Returned int `json:"returned"`
	// Available is how many there were.
	Available int `json:"available"`
}

// Object is what a write made or changed, as Gitea's answer names it.
type Object struct {
	// Kind is what it is: issue, pull, comment, release, repo, commit, …
	Kind string `json:"kind"`
	// ID is Gitea's internal number.
	ID int64 `json:"id,omitempty"`
	// Number is the one that people see.
	Number int64 `json:"number,omitempty"`
	// SHA is a commit's hash.
	SHA string `json:"sha,omitempty"`
	// URL is the path of its web page; parts that repeat an argument's value
	// are "[masked]".
	URL string `json:"url,omitempty"`
}

// Detail describes an event that is not a call.
type Detail struct {
	// Reason says in words what happened.
	Reason string `json:"reason,omitempty"`
	// Version is Aegis's.
	Version string `json:"version,omitempty"`
	// Replica is the name of the process among those that share a store, which each
	// have a log of their own.
	Replica string `json:"replica,omitempty"`
	// Key is the public key that signs checkpoints from here on, in the
	// verifier format of signed notes.
	Key string `json:"key,omitempty"`
	// Note is a signed note; see docs/audit.md.
	Note string `json:"note,omitempty"`
	// First is the first sequence number that the event is about.
	First uint64 `json:"first,omitempty"`
	// Last is the last sequence number that the event is about.
	Last uint64 `json:"last,omitempty"`
	// LastHash is the hash of that record.
	LastHash string `json:"last_hash,omitempty"`
	// Count is how many calls were refused or records dropped.
	Count uint64 `json:"count,omitempty"`
	// Suppressed is how many events of this kind came too fast to be recorded
	// one by one since the last that was.
	Suppressed uint64 `json:"suppressed,omitempty"`
	// Bytes is the size of what was kept aside.
	Bytes int64 `json:"bytes,omitempty"`
	// SHA256 is its digest.
	SHA256 string `json:"sha256,omitempty"`
	// File is where it was kept, in the log's folder.
	File string `json:"file,omitempty"`
	// Since is when an outage began.
	Since *time.Time `json:"since,omitempty"`
	// Sink is the second sink that the event is about.
	Sink string `json:"sink,omitempty"`
}

// identityOf returns the record form of id; nil without one.
func identityOf(id *proxy.Identity, sudo string) *Identity {
	if id == nil {
		return nil
	}
	return &Identity{Login: id.Login, Mode: string(id.Mode), Token: id.TokenName, Sudo: sudo}
}

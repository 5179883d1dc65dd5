// Package config reads the one YAML file of Aegis. Its structs are the manual:
// every field says what it means, its unit, range and default, and what it
// excludes. Loading is strict and reports every problem at once with its place
// in the file. The package imports nothing else of Aegis.
//
// Rules that need nothing but the field itself are in its tags, so that the
// loader, the JSON Schema and docs/config.md cannot disagree:
//
//	yaml      the key
//	required  an empty value is an error
//	range     least and greatest value, in the field's own notation
//	length    least and greatest length in characters, of each item in lists
//	pattern   what the text, or each item, must match; says puts it in words
//	enum      the values to choose from; empty adds the empty one
//	header    the value goes into an HTTP header: visible ASCII only
//	file      it names a file; a relative path starts at the folder of the configuration
//	literal   "${" has no meaning here and is ordinary text
//	quiet     nothing below is ever quoted in a message
//	example   a good value, for messages, editors and the manual
//
// Rules across fields are in validate.go.
package config

//go:generate go run ./gen -root ..

// Config is the whole file.
type Config struct {
	// Listen is the TCP address to serve on, host:port. An empty host is all
	// interfaces; port 0 lets the system choose. Default 127.0.0.1:8080.
	Listen string `yaml:"listen" example:"0.0.0.0:8080"`
	// PublicURL is the address that clients use, for example
	// https://aegis.example.org. Its host is allowed in Host and Origin headers,
	// and it is the base of every absolute URL that Aegis gives out. Plain http
	// is for loopback hosts only. Empty: http://<listen>.
	PublicURL *URL `yaml:"public_url" example:"https://aegis.example.org"`
	// DataDir is the folder for what Aegis keeps: certificates and their
	// account, the audit log and its key. It is made when it is missing, for its owner alone. A relative
	// path starts at the folder of the configuration file. Default data.
	DataDir string `yaml:"data_dir" file:"true" length:"1 4096" example:"/var/lib/aegis"`
	// TLS says how the listener is encrypted.
	TLS TLS `yaml:"tls"`
	// Gitea is the server behind Aegis.
	Gitea Gitea `yaml:"gitea"`
	// Auth says who may call. Aegis never serves callers that it does not know.
	Auth Auth `yaml:"auth"`
	// Store keeps grants and tokens of people who signed in.
	Store Store `yaml:"store"`
	// Members says who may use the default endpoint, /mcp. Required when there
	// are teams. Empty without teams: everyone whom Aegis knows.
	Members Members `yaml:"members"`
	// Tools selects and shapes what clients see.
	Tools Tools `yaml:"tools"`
	// Results bounds and shapes what calls return.
	Results Results `yaml:"results"`
	// Masking keeps secrets from leaving.
	Masking Masking `yaml:"masking"`
	// Policy is what agents may do beyond what tools selects.
	Policy Policy `yaml:"policy"`
	// Teams are further endpoints, /mcp/<name>, each with its own rules. Names are
	// 1 to 40 characters of a-z 0-9 -.
	Teams map[string]Team `yaml:"teams"`
	// Audit is the log of who did what.
	Audit Audit `yaml:"audit"`
	// Limits bounds how much a caller may ask for.
	Limits Limits `yaml:"limits"`
	// Server tunes the HTTP server.
	Server Server `yaml:"server"`
	// Metrics offers numbers to Prometheus.
	Metrics Metrics `yaml:"metrics"`
	// Tracing sends spans to an OpenTelemetry collector.
	Tracing Tracing `yaml:"tracing"`
	// Log shapes the operational log on standard error.
	Log Log `yaml:"log"`

	// source remembers where in the file each key is; the zero value is a
	// configuration that no file made.
	source source
}

// Gitea describes the upstream server and how to reach it.
type Gitea struct {
	// URL is the base address of Gitea, with its sub-path if it has one and
	// without /api/v1. Required.
	URL *URL `yaml:"url" required:"true" example:"https://git.example.org"`
	// Timeout bounds one call, retry included. 1s to 10m, default 30s. Tools
	// with a longer default of their own (archives, migrations) keep it.
	Timeout Duration `yaml:"timeout" range:"1s 10m"`
	// CAFile is a PEM file of certificate authorities to trust besides the
	// system's, for a Gitea with a private certificate. A relative path starts
	// at the folder of the configuration file. Empty: none.
	CAFile string `yaml:"ca_file" file:"true" example:"/etc/aegis/gitea-ca.pem"`
	// Proxy is the HTTP proxy to reach Gitea through. Empty: none; the proxy
	// variables of the environment are never used.
	Proxy *URL `yaml:"proxy" example:"http://proxy.example.org:3128"`
	// MaxConnections bounds the connections to Gitea, idle ones included.
	// 1 to 4096, default 128.
	MaxConnections int `yaml:"max_connections" range:"1 4096"`
	// MaxResponseBytes bounds what is kept of one answer of Gitea; one with more is
	// an error that says so. With fields an answer may have 16 times as much before
	// they are picked. 64KiB to 1GiB, default 32MiB.
	MaxResponseBytes ByteSize `yaml:"max_response_bytes" range:"64KiB 1GiB"`
	// Catalog is a file made by "aegis catalog build" that replaces the built-in
	// catalog of Gitea 28.1.0. A relative path starts at the folder of the
	// configuration file. Empty: built in.
	Catalog string `yaml:"catalog" file:"true" example:"/etc/aegis/catalog.json"`
	// HideMissing hides tools whose operation the live server's own API
	// description (/swagger.v1.json) lacks. Until that could be read, nothing is
	// served and /readyz says why. Default false.
	HideMissing bool `yaml:"hide_missing"`
	// Passthrough hands every request that is not for Aegis itself to Gitea:
	// web pages, git over HTTP, LFS, packages. One host name then serves both.
	// Gitea decides who may do what there. Default false.
	Passthrough bool `yaml:"passthrough"`
	// StripHeaders are further request headers to remove before a request is
	// passed through, for a Gitea whose reverse proxy authentication was given
	// header names of its own. The usual ones (X-WEBAUTH-*, Remote-User,
	// X-Forwarded-*, X-Real-IP and the like) are always removed.
	StripHeaders []string `yaml:"strip_headers" pattern:"^[A-Za-z0-9_-]{1,64}$" says:"a header name of letters, digits, - and _" example:"X-Company-User"`
}

// Auth lists the credentials that clients may show.
type Auth struct {
	// Tokens are static bearer tokens, each with the identity it stands for. At
	// least one is needed unless oauth is enabled, on loopback addresses too.
	Tokens []Token `yaml:"tokens" quiet:"true"`
	// OAuth lets each person sign in with their own Gitea account.
	OAuth OAuth `yaml:"oauth"`
}

// Token is one static bearer token and the identity it stands for.
type Token struct {
	// Name names the token in logs and audit; unique, 1 to 64 characters of
	// a-z A-Z 0-9 . _ -. Required.
	Name string `yaml:"name" required:"true" pattern:"^[A-Za-z0-9._-]{1,64}$" says:"1 to 64 characters of a-z A-Z 0-9 . _ -" example:"alice"`
	// Token is what the client sends as "Authorization: Bearer …"; unique, at
	// least 16 characters, better 32. "openssl rand -hex 32" makes a good one.
	// Required.
	Token Secret `yaml:"token" required:"true" length:"16 4096" header:"true" example:"${AEGIS_TOKEN}"`
	// GiteaToken is the Gitea access token that calls run with; make it in Gitea
	// under Settings, Applications. Required.
	GiteaToken Secret `yaml:"gitea_token" required:"true" length:"1 4096" header:"true" example:"${GITEA_TOKEN}"`
	// AllowSudo offers the sudo argument to this identity, which must be a
	// Gitea site administrator. Default false.
	AllowSudo bool `yaml:"allow_sudo"`
}

// Tools selects and shapes the tools that clients see. A tool that is filtered
// out is unknown in every way: it is not listed, not found and not called.
type Tools struct {
	// Mode is "full" (every enabled tool is listed) or "search" (a small fixed
	// set that finds, describes and calls the others). Default full.
	Mode string `yaml:"mode" enum:"full search"`
	// Toolsets are tool domains (issue, pull, …) or presets (reader,
	// contributor, reviewer, maintainer, release, ci, admin), which add up;
	// docs/toolsets.md says what each holds and costs. Empty: all, unless enable
	// names any.
	Toolsets []string `yaml:"toolsets" pattern:"^[A-Za-z0-9_.-]{1,100}$" says:"a name of letters, digits, _ . and -" example:"contributor"`
	// Enable adds tools to the toolsets, by name or glob (gitea_issue_*). Without
	// toolsets it is the whole list: only the tools that it names.
	Enable []string `yaml:"enable" pattern:"^[A-Za-z0-9_.*?-]{1,100}$" says:"a name or glob of letters, digits, _ . - * and ?" example:"gitea_release_*"`
	// Disable removes tools, by name or glob; it wins over toolsets and enable.
	// Alone it takes away from all tools.
	Disable []string `yaml:"disable" pattern:"^[A-Za-z0-9_.*?-]{1,100}$" says:"a name or glob of letters, digits, _ . - * and ?" example:"gitea_*_delete*"`
	// ReadOnly removes every tool that changes something. Default false.
	ReadOnly bool `yaml:"read_only"`
	// MaxRisk removes tools above this class: R0 public or harmless read, R1
	// private read, R2 reversible write, R3 destructive or hard to undo, R4
	// administers the instance or hands out credentials. Default R4.
	MaxRisk string `yaml:"max_risk" enum:"R0 R1 R2 R3 R4"`
	// AllowRiskByTool raises max_risk for single tools, by name, to R0, R1, R2,
	// R3 or R4: {gitea_issue_delete: R3}.
	AllowRiskByTool map[string]string `yaml:"allow_risk_by_tool" enum:"R0 R1 R2 R3 R4"`
	// Pinned lists tools by name that stay listed in search mode.
	Pinned []string `yaml:"pinned" pattern:"^[A-Za-z0-9_.-]{1,100}$" says:"a name of letters, digits, _ . and -" example:"gitea_issue_list"`
	// Raw offers gitea_api_request, which reaches routes that the catalog
	// lacks under the same rules. Default true.
	Raw bool `yaml:"raw"`
	// PageSize is the number of tools in one page of tools/list. 1 to 1000,
	// default 1000 (one page: many clients never ask for the second).
	PageSize int `yaml:"page_size" range:"1 1000"`
	// ListTTL is how long clients may keep the tool list (protocol 2026-07-28).
	// 0s to 24h, default 5m.
	ListTTL Duration `yaml:"list_ttl" range:"0s 24h"`
}

// Results bounds and shapes what a call returns.
type Results struct {
	// MaxItems is the number of array items in one result. 1 to 1000, default 100.
	MaxItems int `yaml:"max_items" range:"1 1000"`
	// MaxChars is the number of characters of data in one result. 1000 to
	// 10000000, default 60000.
	MaxChars int `yaml:"max_chars" range:"1000 10000000"`
	// MaxBinaryBytes bounds files, decoded, in either direction. 1KiB to 256MiB,
	// default 4MiB. Files travel as base64, a third larger than they are, so
	// server.max_body_bytes bounds uploads too.
	MaxBinaryBytes ByteSize `yaml:"max_binary_bytes" range:"1KiB 256MiB"`
	// TextBlocks returns text bodies (diffs, raw files, logs) as a second
	// content item instead of a JSON string. Default false.
	TextBlocks bool `yaml:"text_blocks"`
	// Structured also sends structuredContent. It doubles the size of results
	// for clients that show both. Default false.
	Structured bool `yaml:"structured"`
	// Slim gives list operations the short default fields that docs/tools.md
	// documents, when the call names none. Default false.
	Slim bool `yaml:"slim"`
	// Sanitize treats characters that people cannot see and models can, in the
	// text of results: "remove" takes them out, "mark" makes them visible,
	// "off" leaves them. These are tag characters, bidirectional controls, runs of
	// zero-width characters, HTML comments in Markdown and terminal escapes.
	// Default remove.
	Sanitize string `yaml:"sanitize" enum:"off mark remove"`
	// FieldsDefault gives tools, by name, the fields of data they return when
	// the call names none: {gitea_issue_list: [number, title, user.login]}.
	// 1 to 100 fields for a tool.
	FieldsDefault map[string][]string `yaml:"fields_default" pattern:"^[A-Za-z0-9_+-]+(\\[\\])?(\\.[A-Za-z0-9_+-]+(\\[\\])?)*$" says:"a path such as title, user.login or labels[].name"`
}

// Masking keeps secrets from leaving. Exact redaction of the secrets that
// Aegis knows is always on and has no switch.
type Masking struct {
	// Mode is what a match of a pattern does in results: "off", "mask"
	// (shorten it), "block" (withhold the result) or "report" (count it only).
	// Default mask.
	Mode string `yaml:"mode" enum:"off mask block report"`
	// Input is what a match does in the arguments of writing tools: "off",
	// "mask" or "block". Default off.
	Input string `yaml:"input" enum:"off mask block"`
	// ExtraSecrets are further values to redact exactly, 4 characters or longer.
	ExtraSecrets []Secret `yaml:"extra_secrets" length:"4 65536" example:"file:/run/secrets/deploy_key"`
	// Builtin switches the built-in rules. Default true.
	Builtin bool `yaml:"builtin"`
	// DisableRules names built-in rules to leave out.
	DisableRules []string `yaml:"disable_rules" pattern:"^[A-Za-z0-9_.-]{1,100}$" says:"a name of letters, digits, _ . and -" example:"generic-assignment"`
	// Rules are further patterns.
	Rules []MaskRule `yaml:"rules"`
}

// MaskRule is one pattern of the file.
type MaskRule struct {
	// Name names the rule in metrics, audit and output; unique, 1 to 64
	// characters of a-z 0-9 - _. Required.
	Name string `yaml:"name" required:"true" pattern:"^[a-z0-9_-]{1,64}$" says:"1 to 64 characters of a-z 0-9 - _" example:"internal-key"`
	// Regex is the pattern, RE2 syntax. With a capture group only group 1 is
	// replaced. It must not match the empty text. Write it in single quotes.
	// Required.
	Regex *Regexp `yaml:"regex" required:"true" example:"ACME-[0-9A-F]{32}"`
	// Replacement is literal text that takes the match's place; empty deletes
	// it. Absent: a shortened form that keeps the kind visible. Not with
	// action block or report. At most 1000 characters.
	Replacement *string `yaml:"replacement" literal:"true" length:"0 1000" example:"[internal key]"`
	// Keywords are literals (case-insensitive) one of which must be near the
	// match, within 64 bytes before it or in it. 1 to 64 characters each.
	Keywords []string `yaml:"keywords" literal:"true" length:"1 64" example:"acme"`
	// Validator checks the replaced span: "luhn", "iso7064" or "crc32"
	// (GitHub's token checksum). Empty: none.
	Validator string `yaml:"validator" enum:"luhn iso7064 crc32" empty:"true"`
	// Entropy is the least Shannon entropy of the span in bits per character.
	// 0 to 8, default 0 (any).
	Entropy float64 `yaml:"entropy" range:"0 8"`
	// Allow lists spans, exactly, that are not secrets.
	Allow []string `yaml:"allow" literal:"true" length:"1 4096" example:"ACME-00000000000000000000000000000000"`
	// Action is "mask", "block" or "report"; empty follows masking.mode.
	Action string `yaml:"action" enum:"mask block report" empty:"true"`
}

// Limits bounds how much a caller may ask for, as token buckets: a bucket holds
// burst tokens, each request takes one, and rate fills it up again. Nobody waits
// in a queue: what finds no token is refused and told when to come back.
type Limits struct {
	// Address counts HTTP requests by client address, before authentication.
	// IPv6 addresses count by their /64 network. Default rate 200/s and burst 1000:
	// an office or a proxy may be one address.
	Address Limit `yaml:"address"`
	// Identity counts the calls of each identity. Default rate 100/s and burst 500.
	Identity Limit `yaml:"identity"`
	// Team counts the calls of all identities of a team together. Default rate off
	// and burst 0.
	Team Limit `yaml:"team"`
	// Read counts the calls of each identity that change nothing. Default rate off
	// and burst 0.
	Read Limit `yaml:"read"`
	// Write counts the calls of each identity that change something and can be
	// undone. Default rate off and burst 0.
	Write Limit `yaml:"write"`
	// Destructive counts the calls of each identity that delete, are hard to
	// undo, or administer the instance (risk R3 and R4). Default rate off and
	// burst 0.
	Destructive Limit `yaml:"destructive"`
	// Tools counts the calls of each identity by tool, for tools named here:
	// {gitea_repository_search: {rate: 30/m}}. Default rate off and burst 0.
	Tools map[string]Limit `yaml:"tools"`
	// Concurrency bounds calls at the same time.
	Concurrency Concurrency `yaml:"concurrency"`
	// MaxKeys is how many callers each kind of bucket remembers; those unseen
	// longest are forgotten first. A caller takes some 400 bytes. 1000 to
	// 1000000, default 65536.
	MaxKeys int `yaml:"max_keys" range:"1000 1000000"`
	// Shared counts the calls of identities and teams in the store, so that all
	// replicas together keep to these limits. Needs store.kind redis. The limit
	// by address and concurrency count on each replica. Default false.
	Shared bool `yaml:"shared"`
	// OnStoreFailure is what shared limits do while the store does not answer:
	// "local" (each replica counts its part of every limit) or "refuse" (calls
	// that a limit is set for are refused). Default local.
	OnStoreFailure string `yaml:"on_store_failure" enum:"local refuse"`
}

// Limit is one token bucket.
type Limit struct {
	// Rate is how fast the bucket fills: 20/s, 300/m, 1000/h, or "off" for no
	// bound.
	Rate Rate `yaml:"rate" example:"300/m"`
	// Burst is how many tokens the bucket holds; 0: as many as the rate's own
	// number, so that 300/m may come at once. 0 to 1000000.
	Burst int `yaml:"burst" range:"0 1000000"`
}

// Concurrency bounds calls at the same time. A call over the bound is refused
// at once, not queued.
type Concurrency struct {
	// Identity bounds the calls of one identity; 0 is no bound. 0 to 100000,
	// default 64.
	Identity int `yaml:"identity" range:"0 100000"`
	// Total bounds all calls together; 0 is no bound. 0 to 100000, default 512.
	Total int `yaml:"total" range:"0 100000"`
}

// Metrics offers numbers to Prometheus at /metrics of a listener of its own.
type Metrics struct {
	// Listen is the TCP address for metrics, host:port, loopback unless
	// allow_remote is set. Empty: no metrics.
	Listen string `yaml:"listen" example:"127.0.0.1:9464"`
	// AllowRemote permits an address that other machines reach. Metrics hold no
	// secrets, but anybody who reaches them may read them. Default false.
	AllowRemote bool `yaml:"allow_remote"`
}

// Server tunes the HTTP server.
type Server struct {
	// AllowedHosts are further Host header names to answer to, besides loopback
	// and the host of public_url. Names or IP addresses without port, in any
	// case; no wildcards.
	AllowedHosts []string `yaml:"allowed_hosts" example:"aegis.internal"`
	// AllowedOrigins are further origins that browsers may call from, for
	// example https://inspector.example.org. Loopback origins and public_url's
	// are always allowed.
	AllowedOrigins []string `yaml:"allowed_origins" example:"https://inspector.example.org"`
	// TrustedProxies are the networks of reverse proxies whose word on the
	// client's address is believed. Everybody else's is ignored. What a proxy
	// says of host and scheme never counts: public_url decides.
	TrustedProxies []Prefix `yaml:"trusted_proxies" example:"10.0.0.0/8"`
	// ClientHeader is the header that the trusted proxies write: X-Forwarded-For
	// or Forwarded (RFC 7239). The other one is ignored, since a proxy passes on
	// what it does not write. Default X-Forwarded-For.
	ClientHeader string `yaml:"client_header" enum:"X-Forwarded-For Forwarded"`
	// ProxyProtocol reads the PROXY protocol (versions 1 and 2) on connections
	// from trusted proxies. Default false.
	ProxyProtocol bool `yaml:"proxy_protocol"`
	// MaxConnections bounds the open connections; a further one is closed at
	// once. 1 to 1000000, default 4096.
	MaxConnections int `yaml:"max_connections" range:"1 1000000"`
	// MaxConnectionsPerAddress bounds the open connections of one address (IPv6:
	// /64 network). Loopback and trusted proxies are exempt. 1 to 1000000,
	// default 256.
	MaxConnectionsPerAddress int `yaml:"max_connections_per_address" range:"1 1000000"`
	// MaxHeaderBytes bounds the head of a request: its line and all headers.
	// 4KiB to 1MiB, default 64KiB.
	MaxHeaderBytes ByteSize `yaml:"max_header_bytes" range:"4KiB 1MiB"`
	// MaxHeaders bounds the number of header lines. 16 to 1000, default 100.
	MaxHeaders int `yaml:"max_headers" range:"16 1000"`
	// MinBodyRate is the least number of bytes per second at which a request
	// body must arrive, on average and after the first five seconds. 0 to 1MiB,
	// default 1KiB; 0 leaves read_timeout alone to end slow bodies.
	// Only the time that Aegis waits for the body counts.
	MinBodyRate ByteSize `yaml:"min_body_rate" range:"0 1MiB"`
	// MaxBodyBytes bounds a request body. 64KiB to 256MiB, default 8MiB.
	MaxBodyBytes ByteSize `yaml:"max_body_bytes" range:"64KiB 256MiB"`
	// ReadTimeout bounds reading one request, head and body, and how long an
	// answer may stand still because its client does not read. 1s to 10m,
	// default 1m.
	ReadTimeout Duration `yaml:"read_timeout" range:"1s 10m"`
	// IdleTimeout closes kept-alive connections. 1s to 1h, default 2m.
	IdleTimeout Duration `yaml:"idle_timeout" range:"1s 1h"`
	// ShutdownTimeout is how long calls in flight may take to finish after
	// SIGTERM. 0s to 10m, default 30s.
	ShutdownTimeout Duration `yaml:"shutdown_timeout" range:"0s 10m"`
	// CursorKey seals the cursors of truncated results, at least 32 characters.
	// Empty: a fresh one at each start, so cursors do not outlive a restart.
	CursorKey Secret `yaml:"cursor_key" length:"32 4096" example:"${AEGIS_CURSOR_KEY}"`
}

// Log shapes the operational log.
type Log struct {
	// Level is trace, debug, info, warn or error. Default info.
	Level string `yaml:"level" enum:"trace debug info warn error"`
	// Format is "json", "console" or "auto" (console on a terminal). Default auto.
	Format string `yaml:"format" enum:"auto json console"`
}

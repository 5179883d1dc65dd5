package config

// ruleNames are the names that broken files in testdata/bad begin with.
var ruleNames = [rules]string{
	"other", "size", "encoding", "syntax", "depth", "count", "second-document", "merge-key", "tag", "unknown-key",
	"duplicate-key", "type", "null", "control", "dollar", "secret", "header", "value", "required", "range", "length",
	"pattern", "enum", "listen", "anonymous", "api-path", "public-url", "token-twice", "mask-twice", "mask-empty",
	"mask-replacement", "fields-default", "host", "origin", "limit-tool", "limit-burst", "proxy-protocol", "metrics-remote",
	"tls-files", "tls-hosts", "http-listen", "acme", "audit-sink", "tracing",
	"oauth-need", "oauth-client", "scope", "store", "store-redis", "team-name", "members", "policy", "more",
}

// RuleNames are the names of all rules that this package raises problems by.
func RuleNames() []string { return ruleNames[ruleOther+1:] }

// RuleOf returns the name of the rule that raised p.
func RuleOf(p Problem) string { return ruleNames[p.rule] }

// Quote is how messages repeat a value.
func Quote(s string) string { return quote(s) }

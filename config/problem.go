package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Problem is one thing that is wrong with a configuration, and where.
type Problem struct {
	// File is the file's name as it was given; "" without a file.
	File string
	// Line and Col count from 1, Col in characters; 0 without a file.
	Line, Col int
	// Key is the path of the key, such as auth.tokens[0].name; "" is the whole file.
	Key string
	// What says what is wrong, Do what to do about it. Neither holds a secret.
	What, Do string

	rule rule
}

// String returns the problem as file:line:col: key: what; what to do.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		b.WriteByte(':')
		if p.Line > 0 {
			b.WriteString(strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Col) + ":")
		}
		b.WriteByte(' ')
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.What)
	if p.Do != "" {
		b.WriteString("; " + p.Do)
	}
	return b.String()
}

// Problems are all that is wrong with a configuration, in the file's order.
// It is the error that [Load] and [Parse] return for a file that is there but
// not right.
type Problems []Problem

// Error returns one line per problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Sort orders the problems by their place in the file, and keeps the order of
// those of one place. Use it after adding problems that later stages found.
func (ps Problems) Sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
}

// rule names why a problem was raised, so that a test can hold that each
// reason has a broken file that shows it.
type rule uint8

const (
	ruleOther rule = iota // raised outside this package
	ruleSize
	ruleEncoding
	ruleSyntax
	ruleDepth
	ruleCount
	ruleSecondDocument
	ruleMergeKey
	ruleTag
	ruleUnknownKey
	ruleDuplicateKey
	ruleType
	ruleNull
	ruleControl
	ruleDollar
	ruleSecret
	ruleHeader
	ruleValue
	ruleRequired
	ruleRange
	ruleLength
	rulePattern
	ruleEnum
	ruleListen
	ruleAnonymous
	ruleAPIPath
	rulePublicURL
	ruleTokenTwice
	ruleMaskTwice
	ruleMaskEmpty
	ruleMaskReplacement
	ruleFieldsDefault
	ruleHost
	ruleOrigin
	ruleLimitTool
	ruleLimitBurst
	ruleProxyProtocol
	ruleMetricsRemote
	ruleTLSFiles
	ruleTLSHosts
	ruleHTTPListen
	ruleACME
	ruleAuditSink
	ruleTracing
	ruleOAuth
	ruleOAuthClient
	ruleScope
	ruleStore
	ruleStoreRedis
	ruleTeam
	ruleMembers
	rulePolicy
	ruleMore
	rules // how many there are
)

// ruleNames are the names that broken files in testdata/bad begin with.
var ruleNames = [rules]string{
	"other", "size", "encoding", "syntax", "depth", "count", "second-document", "merge-key", "tag", "unknown-key",
	"duplicate-key", "type", "null", "control", "dollar", "secret", "header", "value", "required", "range", "length",
	"pattern", "enum", "listen", "anonymous", "api-path", "public-url", "token-twice", "mask-twice", "mask-empty",
	"mask-replacement", "fields-default", "host", "origin", "limit-tool", "limit-burst", "proxy-protocol", "metrics-remote",
	"tls-files", "tls-hosts", "http-listen", "acme", "audit-sink", "tracing",
	"oauth-need", "oauth-client", "scope", "store", "store-redis", "team-name", "members", "policy", "more",
}

// maxQuoted is how many characters of a value a message repeats.
const maxQuoted = 40

// quote returns s in quotes, shortened and without control characters.
func quote(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if utf8.RuneCountInString(s) > maxQuoted {
		s = string([]rune(s)[:maxQuoted-1]) + "…"
	}
	return `"` + strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s) + `"`
}

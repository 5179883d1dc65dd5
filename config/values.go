package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
)

// valueError is why a text is no value of its type, and what to write instead.
// Neither part quotes the text: the caller knows whether it may be shown.
type valueError struct{ what, do string }

// Error joins both parts.
func (e *valueError) Error() string { return e.what + "; " + e.do }

// Duration is a time.Duration written as Go writes it: 500ms, 30s, 5m, 1h30m.
type Duration time.Duration

// UnmarshalText reads a duration. Negative ones and bare numbers are refused.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	v, err := time.ParseDuration(s)
	switch {
	case isDigits(s):
		return &valueError{"is a number without a unit", "write 500ms, 30s, 5m or 1h"}
	case err == nil && !strings.HasPrefix(s, "-"):
		*d = Duration(v)
		return nil
	case strings.HasSuffix(s, "d") && isDigits(s[:len(s)-1]):
		return &valueError{"is in days, which are not a unit here", "write hours, such as 24h"}
	case err == nil:
		return &valueError{"is negative", "write a duration of 0s or more"}
	}
	return &valueError{"is not a duration", "write it like 500ms, 30s, 5m or 1h30m"}
}

// MarshalText writes the duration the short way: 30s, 5m, 1h30m.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String returns the duration without the zero units that time.Duration adds.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Std returns the duration as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// ByteSize is a number of bytes, written 512KiB, 32MiB, 1GiB or a bare number.
type ByteSize int64

var byteUnits = [...]struct {
	name string
	size ByteSize
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// UnmarshalText reads a size. Decimal units (KB, MB) are refused rather than
// guessed at.
func (b *ByteSize) UnmarshalText(text []byte) error {
	digits, unit := string(text), ByteSize(1)
	for _, u := range byteUnits {
		if s, ok := strings.CutSuffix(digits, u.name); ok {
			digits, unit = s, u.size
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if !isDigits(digits) || errors.Is(err, strconv.ErrSyntax) {
		return &valueError{
			"is not a size", "write it like 512KiB, 32MiB, 1GiB or 1048576, with no space and no fraction"}
	}
	if err != nil || ByteSize(n) > (1<<62)/unit {
		return &valueError{"is too large a size", "write a smaller one"}
	}
	*b = ByteSize(n) * unit
	return nil
}

// MarshalText writes the size in the largest unit that divides it.
func (b ByteSize) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// String returns the size in the largest unit that divides it.
func (b ByteSize) String() string {
	for _, u := range byteUnits {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// URL is an absolute http or https URL without user, query or fragment. Scheme
// and host are in lower case and the path has no trailing slash.
type URL struct{ url.URL }

// UnmarshalText reads a URL. Errors never repeat it: the text may hold a password.
func (u *URL) UnmarshalText(text []byte) error {
	const example = "write it like https://git.example.org or http://127.0.0.1:3000"
	s := string(text)
	v, err := url.Parse(s)
	if err != nil {
		return &valueError{"is not a URL", example}
	}
	switch {
	case v.Scheme != "http" && v.Scheme != "https":
		return &valueError{"is not an absolute http or https URL", example}
	case v.User != nil:
		return &valueError{"holds a user name or password", "remove the part before @"}
	case v.RawQuery != "" || v.ForceQuery || v.Fragment != "" || strings.HasSuffix(s, "#"):
		return &valueError{"has a query or a fragment", "end it before the ? or #"}
	case v.Opaque != "" || !validHost(v.Hostname()):
		return &valueError{"has no valid host", "write a DNS name in ASCII or an IP address; " + example}
	case !validPort(v):
		return &valueError{
			"has no valid port", "write a number from 1 to 65535 after the host, or leave port and colon out"}
	case !plainPath(v):
		return &valueError{"has a path that is not plain",
			"use path segments of letters, digits, - . _ ~ only, without . and .. segments"}
	}
	v.Host = strings.ToLower(v.Host)
	v.Path = strings.TrimRight(v.Path, "/")
	*u = URL{*v}
	return nil
}

// MarshalText writes the URL.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.URL.String()), nil }

// Loopback reports whether the URL's host is this machine.
func (u *URL) Loopback() bool { return loopback(u.Hostname()) }

func validPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	return portNumber(u.Port(), 1)
}

func portNumber(s string, least int) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= least && n < 1<<16
}

func plainPath(u *url.URL) bool {
	for _, seg := range strings.Split(strings.TrimSuffix(u.Path, "/"), "/")[1:] {
		if !plainSegment.MatchString(seg) || seg == "." || seg == ".." {
			return false
		}
	}
	return u.RawPath == ""
}

var (
	plainSegment = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)
	hostLabel    = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$`)
)

// validHost accepts DNS names in ASCII (underscores too, which container
// networks use) and IP addresses without zone.
func validHost(h string) bool {
	if a, err := netip.ParseAddr(h); err == nil {
		return a.Zone() == ""
	}
	if h == "" || len(h) > 253 {
		return false
	}
	labels := strings.Split(strings.TrimSuffix(h, "."), ".")
	return !isDigits(labels[len(labels)-1]) && // 300.1.2.3 is a mistyped address
		!slices.ContainsFunc(labels, func(l string) bool { return !hostLabel.MatchString(l) })
}

func loopback(host string) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Regexp is a compiled RE2 pattern.
type Regexp struct{ *regexp.Regexp }

// UnmarshalText compiles the pattern.
func (r *Regexp) UnmarshalText(text []byte) error {
	re, err := regexp.Compile(string(text))
	if err == nil {
		r.Regexp = re
		return nil
	}
	var bad *syntax.Error
	if !errors.As(err, &bad) {
		return &valueError{"is not a valid RE2 pattern", "see the syntax of Go's regexp package"}
	}
	do := "correct the pattern"
	if strings.HasPrefix(bad.Expr, "(?") || strings.HasPrefix(bad.Expr, `\`) {
		do = "RE2 has no lookaround and no backreferences; write it without them"
	}
	return &valueError{fmt.Sprintf("is not a valid RE2 pattern: %s at %s", bad.Code, quote(bad.Expr)), do}
}

// MarshalText writes the pattern.
func (r Regexp) MarshalText() ([]byte, error) {
	if r.Regexp == nil {
		return nil, nil
	}
	return []byte(r.Regexp.String()), nil
}

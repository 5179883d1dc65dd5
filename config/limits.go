package config

import (
	"errors"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Rate is a number of events per unit of time, written 20/s, 300/m or 1000/h,
// or "off" for no bound. The zero value is off.
type Rate struct {
	// Count is how many events Per admits; 0 is off.
	Count int
	// Per is one second, minute or hour.
	Per time.Duration
}

// rateUnits are the units of time by their spelling.
var rateUnits = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}

// maxRate is more events in a unit of time than Aegis could count.
const maxRate = 1_000_000_000

// UnmarshalText reads a rate.
func (r *Rate) UnmarshalText(text []byte) error {
	const example = `write it like 20/s, 300/m or 1000/h, or "off" for no bound`
	s := string(text)
	if s == "off" {
		*r = Rate{}
		return nil
	}
	count, unit, found := strings.Cut(s, "/")
	per := rateUnits[unit]
	if !found || per == 0 || !isDigits(count) {
		return &valueError{"is not a rate", example}
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if errors.Is(err, strconv.ErrRange) || n > maxRate {
		return &valueError{"is too large a rate", `write "off" for no bound`}
	}
	if n == 0 {
		return &valueError{"is a rate of zero, which would serve nobody", `write 1/h or more, or "off" for no bound`}
	}
	*r = Rate{Count: int(n), Per: per}
	return nil
}

// MarshalText writes the rate as it is read.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// String returns the rate as it is read.
func (r Rate) String() string {
	for unit, per := range rateUnits {
		if per == r.Per && !r.Off() {
			return strconv.Itoa(r.Count) + "/" + unit
		}
	}
	return "off"
}

// Off reports whether the rate bounds nothing.
func (r Rate) Off() bool { return r.Count == 0 }

// PerSecond returns the events per second, +Inf when the rate is off.
func (r Rate) PerSecond() float64 {
	if r.Off() {
		return math.Inf(1)
	}
	return float64(r.Count) / r.Per.Seconds()
}

// Size returns the tokens of the bucket: Burst, or the rate's own count when
// Burst is 0.
func (l Limit) Size() int {
	if l.Burst > 0 {
		return l.Burst
	}
	return l.Rate.Count
}

// Prefix is a network in CIDR notation, or a single address.
type Prefix struct{ netip.Prefix }

// UnmarshalText reads 10.0.0.0/8, 2001:db8::/32 or a single address. Bits
// beyond the prefix length are refused: they show that the length is wrong.
func (p *Prefix) UnmarshalText(text []byte) error {
	const example = "write it like 10.0.0.0/8, 192.0.2.7 or 2001:db8::/32"
	s := string(text)
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		a = a.Unmap()
		p.Prefix = netip.PrefixFrom(a, a.BitLen())
		return nil
	}
	v, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return &valueError{"is not a network", example}
	case v.Addr().Is4In6():
		return &valueError{"is an IPv4 network in IPv6 spelling", "write it as IPv4, such as 10.0.0.0/8"}
	case v.Masked() != v:
		return &valueError{
			"has bits set beyond its prefix length", "write " + v.Masked().String() + ", or correct the length"}
	}
	p.Prefix = v
	return nil
}

// MarshalText writes the network.
func (p Prefix) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

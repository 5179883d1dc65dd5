package redis

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Budget is a bucket of tokens that all processes share.
type Budget struct {
	// Key names the bucket and its limits: another limit is another bucket.
	Key string
	// Every is the time in which one token comes back; positive.
	Every time.Duration
	// Burst is how many tokens the bucket holds; at least 1.
	Burst int
}

// Spent is what became of a token.
type Spent struct {
	// Wait is how long until the bucket has a token; 0: it had one.
	Wait time.Duration
	// Left is how many tokens the bucket has left.
	Left int
}

// The generic cell rate algorithm: the key holds the time at which the bucket is
// full again. A token moves it on by the time in which one comes back; as far
// ahead of now as the whole bucket, and there is none.

// spendScript: the time for one token and for the whole bucket in microseconds, and 1
// token to take or -1 to give back. The time is Redis's. It returns the wait and the number of tokens
// left.
var spendScript = newScript(`
local t = redis.call('TIME')
local at = t[1] * 1000000 + t[2]
local every, burst, n = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local full = tonumber(redis.call('GET', KEYS[1]) or at)
if full < at then full = at end
local fresh = full + n * every
local wait = fresh - burst - at
if n > 0 and wait > 0 then return {math.ceil(wait), 0} end
if fresh <= at then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], string.format('%.0f', fresh), 'PX', math.ceil((fresh - at) / 1000))
end
return {0, math.floor((burst - (fresh - at)) / every)}
`)

// Spend takes one token from each bucket, in one trip, or none from any: what the
// others gave is given back when one of them is empty. Each bucket is a key of its
// own, so for a moment a bucket may miss a token that it gets back. Answers are in
// the order of the buckets. After an error tokens may be missing.
func (s *Store) Spend(ctx context.Context, list []Budget) ([]Spent, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out, err := s.spend(ctx, list, 1)
	if err != nil {
		return nil, err
	}
	var back []Budget
	refused := false
	for i := range out {
		if out[i].Wait > 0 {
			refused = true
		} else {
			back = append(back, list[i])
		}
	}
	if refused && len(back) > 0 {
		_, err = s.spend(ctx, back, -1)
	}
	return out, err
}

// spend runs the script for each bucket.
func (s *Store) spend(ctx context.Context, list []Budget, n int) (out []Spent, err error) {
	// A token too many is no harm: what was sent may be sent again.
	err = s.do(ctx, again, func(ctx context.Context) error {
		out, err = s.spendOnce(ctx, list, n, false)
		if declined(err, "NOSCRIPT") {
			out, err = s.spendOnce(ctx, list, n, true)
		}
		return err
	})
	return out, err
}

// spendOnce sends one command for each bucket; whole: with the script's text, for servers that
// have forgotten it. Times have three decimals of a microsecond, so that high rates stay exact.
func (s *Store) spendOnce(ctx context.Context, list []Budget, n int, whole bool) ([]Spent, error) {
	sent := make([]*command, len(list))
	for i, b := range list {
		every := float64(b.Every) / float64(time.Microsecond)
		sent[i] = spendScript.on(s.o.Prefix+"limit:"+b.Key, whole,
			[]any{strconv.FormatFloat(every, 'f', 3, 64), strconv.FormatFloat(every*float64(b.Burst), 'f', 3, 64), n})
	}
	if err := s.servers.run(ctx, sent...); err != nil {
		return nil, err
	}
	out := make([]Spent, len(list))
	for i, m := range sent {
		got, err := redis.Int64s(m.reply, m.err)
		if err != nil {
			return nil, err
		}
		if len(got) != 2 {
			return nil, errors.New("redis: the limit script gave an odd answer")
		}
		out[i] = Spent{Wait: time.Duration(got[0]) * time.Microsecond, Left: int(got[1])}
	}
	return out, nil
}

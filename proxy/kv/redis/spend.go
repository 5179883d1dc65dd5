package redis

import (
	"context"
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

// The generic cell rate algorithm: the key holds the time at which the bucket is
// full again. A token moves it on by the time in which one comes back; as far
// ahead of now as the whole bucket, and there is none. A full bucket has no key, and the
// others expire when they are full: a caller who stays away costs no memory.

// spendScript: the time for one token and for the whole bucket in microseconds, and 1
// token to take or -1 to give back. The time is Redis's. It returns the wait.
var spendScript = newScript(`
local t = redis.call('TIME')
local at = t[1] * 1000000 + t[2]
local every, burst, n = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local full = tonumber(redis.call('GET', KEYS[1]) or at)
if full < at then full = at end
local fresh = full + n * every
local wait = fresh - burst - at
if n > 0 and wait > 0 then return math.ceil(wait) end
if fresh <= at then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], string.format('%.0f', fresh), 'PX', math.ceil((fresh - at) / 1000))
end
return 0
`)

// Spend takes one token from each bucket, in one trip, or none from any: what the
// others gave is given back when one of them is empty. It returns how long each makes
// the caller wait, 0 where there was a token. Each bucket is a key of its own, which a
// cluster may keep elsewhere, so for a moment a bucket may miss a token that it gets
// back. After an error tokens may be missing.
func (s *Store) Spend(ctx context.Context, list []Budget) ([]time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	waits, err := s.spend(ctx, list, 1)
	if err != nil {
		return nil, err
	}
	var back []Budget
	for i, w := range waits {
		if w == 0 {
			back = append(back, list[i])
		}
	}
	if len(back) > 0 && len(back) < len(list) {
		_, err = s.spend(ctx, back, -1)
	}
	return waits, err
}

// spend runs the script for each bucket. Times have three decimals of a microsecond, so
// that high rates stay exact; Redis keeps whole ones.
func (s *Store) spend(ctx context.Context, list []Budget, n int) (waits []time.Duration, err error) {
	// A token too many is no harm: what was sent may be sent again.
	err = s.do(ctx, again, func(ctx context.Context) error {
		sent := make([]*command, len(list))
		for i, b := range list {
			every := float64(b.Every) / float64(time.Microsecond)
			sent[i] = spendScript.on(s.o.Prefix+"limit:"+b.Key, strconv.FormatFloat(every, 'f', 3, 64),
				strconv.FormatFloat(every*float64(b.Burst), 'f', 3, 64), n)
		}
		if err := s.eval(ctx, spendScript, sent...); err != nil {
			return err
		}
		waits = make([]time.Duration, len(list))
		for i, m := range sent {
			us, err := redis.Int64(m.reply, m.err)
			if err != nil {
				return err
			}
			waits[i] = time.Duration(us) * time.Microsecond
		}
		return nil
	})
	return waits, err
}

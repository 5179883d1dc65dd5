package redis

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
)

// script is a script on one key.
type script struct{ source, hash string }

func newScript(source string) script {
	// The name that Redis gives it; nothing rests on the strength of the hash.
	sum := sha1.Sum([]byte(source))
	return script{source, hex.EncodeToString(sum[:])}
}

// on is the command that runs the script on a key, by its name.
func (s script) on(key string, args ...any) *command {
	return &command{key: key, name: "EVALSHA", args: append([]any{s.hash, 1, key}, args...)}
}

// eval runs a script's commands, and sends its text to the servers that do not have it
// yet or forgot it. When its error is that of a connection, they may have run.
func (s *Store) eval(ctx context.Context, what script, list ...*command) error {
	err := s.servers.run(ctx, list...)
	var unknown []*command
	for _, m := range list {
		if declined(m.err, "NOSCRIPT") { // it did not run; the others did and must not again
			m.name, m.args[0] = "EVAL", what.source
			unknown = append(unknown, m)
		}
	}
	if err != nil || len(unknown) == 0 {
		return err
	}
	return s.servers.run(ctx, unknown...)
}

// run runs a script on one key.
func (s *Store) run(ctx context.Context, what script, key string, args ...any) (any, error) {
	m := what.on(key, args...)
	if err := s.eval(ctx, what, m); err != nil {
		return nil, err
	}
	return m.reply, m.err
}

// The scripts get the entry's key, and first of all the time in microseconds, or
// "" for Redis's own. Numbers of Lua are exact up to 2^53, which microseconds stay
// below for two centuries more.

// now is the beginning of every script that asks for the time. A time that was
// given decides about expiry as well.
const now = `
local at = tonumber(ARGV[1])
if not at then
  local t = redis.call('TIME')
  at = t[1] * 1000000 + t[2]
end
local x = redis.call('HGET', KEYS[1], 'x')
local gone = x and ARGV[1] ~= '' and at >= tonumber(x)
`

// write sets the entry. ttl is in microseconds, 0 for none. HSET comes first: a
// full Redis refuses the first write of a script alone. PEXPIRE has milliseconds, and is
// rounded up so that no entry goes early. A value without an end must lose the field and
// the expiry of the one before it.
const write = `
local function write(version, value, ttl)
  if ttl > 0 then
    redis.call('HSET', KEYS[1], 'v', value, 'n', version, 'x', string.format('%.0f', at + ttl))
    redis.call('PEXPIRE', KEYS[1], math.ceil(ttl / 1000))
  else
    redis.call('HSET', KEYS[1], 'v', value, 'n', version)
    redis.call('HDEL', KEYS[1], 'x')
    redis.call('PERSIST', KEYS[1])
  end
end
`

// putScript: time, new version, value, ttl. A second run writes the same once more, with a
// lifetime that begins later by the pause between the attempts.
var putScript = newScript(now + write + `
write(ARGV[2], ARGV[3], tonumber(ARGV[4]))
return 1
`)

// swapScript: time, new version, value, ttl, expected version ("0": none). It
// returns 1 when the entry has the new version, also from an earlier attempt.
var swapScript = newScript(now + write + `
local n = redis.call('HGET', KEYS[1], 'n')
if gone or not n then n = '0' end
if n == ARGV[2] then return 1 end
if n ~= ARGV[5] then return 0 end
write(ARGV[2], ARGV[3], tonumber(ARGV[4]))
return 1
`)

// takeScript: time. It returns value, version and expiry, or nothing. Redis runs one script
// at a time, so that of several callers one gets the entry.
var takeScript = newScript(now + `
local e = redis.call('HMGET', KEYS[1], 'v', 'n', 'x')
if gone or not e[1] then return false end
redis.call('DEL', KEYS[1])
return e
`)

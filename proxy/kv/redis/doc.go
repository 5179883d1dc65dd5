// Package redis is a [kv.Store] in Redis or Valkey, which several processes
// share: one server, a master that Sentinels watch, or a cluster.
//
// Every entry is a hash of its own, with the fields v (the value), n (the version)
// and x (when it expires, in microseconds since 1970; absent: never), under the
// prefix, "kv:" and the key. Every operation is one command or one script on that
// one key, so that a cluster needs nothing special, and Redis itself lets entries
// expire. Versions are random numbers of 64 bits that the writer chooses: they
// never come back, need no counter beside the entry, and make writes repeatable: a
// write whose answer was lost is sent again and recognised.
//
// What was written may be lost when a master dies before its replica or its log
// has it; Redis promises no more. [Store.Inspect] says how far a server is from
// what this package relies on.
package redis

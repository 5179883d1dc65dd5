// Package limit bounds how much a caller may ask for: token buckets by client
// address before authentication, by identity, team, class of tool and tool after
// it, and caps on calls at the same time. There is no queue: what does not
// fit is refused at once, with the time when to come back.
//
// A call takes one token from each of its buckets or none from any: the buckets
// are looked at together, under their locks in one fixed order, before the first
// token is taken.
//
// The buckets of callers who were not seen for longest are forgotten first, so
// that memory is bounded whatever strangers send. What was counted outlives a reload, not
// a restart, unless limits.shared keeps it in the store.
//
// A new limit is also in maxClaims, in config.TeamLimits and what teams inherit, and in the
// limits that package server gives a team.
package limit

// Package envelope renders what Gitea answered as the JSON that a model reads,
// within the bounds of a team: identity, request, status, pagination, what was
// cut and how to go on, and the data.
//
// The data keeps Gitea's bytes. It is cut only at item borders (arrays), line
// borders (text) or inside the longest strings (objects), never inside a rune or
// an escape. A cut result carries a cursor: opaque, authenticated, bound to
// identity, tool and arguments. Continuing asks Gitea again and starts where the
// last answer stopped; data that has changed in between is pointed out.
package envelope

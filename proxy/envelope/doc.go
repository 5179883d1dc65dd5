// Package envelope renders what Gitea answered as the JSON that a model reads,
// within the bounds of a team: identity, request, status, pagination, what was
// cut and how to go on, and the data.
//
// The data keeps Gitea's bytes. It is cut only at item borders (arrays), line
// borders (text) or inside the longest strings (objects), never inside a rune or
// an escape. A cut result carries a cursor: opaque, authenticated, bound to
// identity, tool and arguments. Continuing asks Gitea again and starts where the
// last answer stopped; data that has changed in between is pointed out.
//
// A model is shown the text that people see. Anybody can write an issue or a README, and
// characters that no browser shows can carry instructions: tag characters, bidirectional
// controls, zero-width characters, HTML comments in Markdown, terminal escapes. They
// are taken out, or made visible; every other byte stays as Gitea sent it. What scripts
// and emoji need stays: joiners inside emoji and between letters of scripts that use
// them, variation selectors after characters that have variants, flags made of tags.
// Unicode Technical Standard #51 and Unicode Standard Annex #9 say which these are.
package envelope

package build

import "slices"

// Bounds of strings by what they hold, in runes.
const (
	// Gitea stores most names in columns of this length.
	shortText = 255       // titles, refs, queries, names of all kinds
	queryText = 1024      // search words, lists of names in one value
	pathText  = 4096      // file paths
	longText  = 1 << 20   // Markdown bodies, messages, keys
	fileText  = 358000000 // base64 of the largest file that Aegis can be told to carry
	manyText  = 10000     // query values that carry a document
)

// Patterns of names. Gitea's own rules are looser in places (a leading dot in
// repository names) and stricter in others (no two dots in user names); what
// matters here is that no value can be a path segment with a meaning: at least
// one character is not a dot, and there is no slash, percent sign, question
// mark, number sign or control character.
const (
	ownerPattern = `^[\w-][\w.-]*$`
	repoPattern  = `^\.*[\w-][\w.-]*$`
	namePattern  = `^\w+$` // variables and secrets
)

var (
	// Wire names, of every place: the same account is called differently by operation.
	ownerNames = []string{
		"owner", "org", "username", "user", "collaborator", "assignee", "target", "template_owner", "repo_owner",
		"new_owner", "new_username", "user_name", "created_by", "assigned_by", "mentioned_by", "poster", "team",
	}
	repoNames = []string{"repo", "repo_name", "template_repo"}
	longNames = []string{
		"body", "message", "content", "description", "note", "text", "Text", "data", "value", "key",
		"armored_public_key", "armored_signature", "tag_message", "merge_message_field", "patch",
	}
	fileNames = []string{"content", "content_base64", "image"}
)

// bound gives every string a length, every number a sensible range and the names in a path
// a pattern, where the inputs say nothing else. Descriptions give next to none of these.
// Without a bound a mistake of a model, or a hostile caller, reaches Gitea as a value of
// megabytes, and a validator has nothing to refuse it by.
func (s *schema) bound(wire, in string) {
	switch s.Type {
	case "string":
		s.boundString(wire, in)
	case "integer":
		s.boundInteger(wire, in)
	case "array":
		s.Items.bound(wire, "item")
	case "object":
		for _, m := range s.Members {
			m.schema.bound(m.name, "member")
		}
		if values, ok := s.Rest.(*schema); ok {
			values.bound("value", "member")
		}
	}
}

// boundString gives a text a pattern and a length by its name and place. By name, since the
// description calls all of them strings: what is a path, a text of a person or a name of an
// account is known from Gitea alone. A name that is not listed gets the short length, which
// errs on the refusing side.
func (s *schema) boundString(wire, in string) {
	if len(s.Enum) != 0 {
		return // the list is the bound
	}
	// The exact bound is results.max_binary_bytes; this one only keeps the schema
	// honest about sizes.
	if s.Encoding == "base64" {
		s.MaxLength = fileText
		return
	}
	if s.Pattern == "" && (in == "path" || in == "query" || in == "body") {
		switch {
		case slices.Contains(repoNames, wire):
			s.Pattern = repoPattern
		case slices.Contains(ownerNames, wire) && in == "path", wire == "owner", wire == "username":
			s.Pattern = ownerPattern
		case in == "path" && (wire == "secretname" || wire == "variablename"):
			s.Pattern = namePattern
		}
	}
	if in == "path" && s.Pattern == "" {
		s.MinLength = 1
	}
	if s.MaxLength != 0 {
		return
	}
	switch {
	case s.Format == "date-time" || s.Format == "date":
		s.MaxLength = 40
	case s.Pattern != "":
		s.MaxLength = 100
	case in == "query" && wire == "body":
		s.MaxLength = manyText
	case slices.Contains(fileNames, wire):
		s.MaxLength = fileText
	case slices.Contains(longNames, wire):
		s.MaxLength = longText
	case wire == "filepath" || wire == "path" || wire == "from_path":
		s.MaxLength = pathText
	case in == "query":
		s.MaxLength = queryText
	default:
		s.MaxLength = shortText
	}
}

// maxLimit bounds a page size. The server has a bound of its own, 50 unless its
// administrator set another, and the result shows which size it used.
const maxLimit = 1000

// boundInteger gives a number a range by its name and place. Numbers in a path are ids and
// counts from 1; 0 there would reach a route that Gitea answers with a list or an error
// that says nothing.
func (s *schema) boundInteger(wire, in string) {
	one, zero, most := int64(1), int64(0), int64(maxLimit)
	paging := in == "query" && (wire == "page" || wire == "limit" || wire == "per_page")
	// Ids, counts and seconds: nothing in Gitea's API is less than zero.
	if s.Minimum == nil {
		s.Minimum = &zero
	}
	if (in == "path" || paging || wire == "index") && *s.Minimum < 1 {
		s.Minimum = &one // a page size of 0 means the default, which is no answer to a question
	}
	if wire == "limit" && paging && (s.Maximum == nil || *s.Maximum > most) {
		s.Maximum = &most
	}
}

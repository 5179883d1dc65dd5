package build

import "slices"

// Bounds of strings by what they hold, in runes.
const (
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
	ownerNames = []string{
		"owner", "org", "username", "user", "collaborator", "assignee", "target", "template_owner", "repo_owner",
		"new_owner", "new_username", "user_name", "created_by", "assigned_by", "mentioned_by", "poster", "team",
	}
	repoNames = []string{"repo", "repo_name", "template_repo"}
	longNames = []string{
		"body", "message", "content", "description", "note", "text", "Text", "data", "value", "key", "armored_public_key",
		"armored_signature", "tag_message", "merge_message_field", "patch",
	}
	fileNames = []string{"content", "content_base64", "image"}
)

// bound gives every string a length, every number a sensible range and the
// names in a path a pattern, where nobody has said better.
func (s *schema) bound(wire, in string) {
	switch s.typ {
	case "string":
		s.boundString(wire, in)
	case "integer":
		s.boundInteger(wire, in)
	case "array":
		s.items.bound(wire, "item")
	case "object":
		for _, m := range s.members {
			m.schema.bound(m.name, "member")
		}
		if s.values != nil {
			s.values.bound("value", "member")
		}
	}
}

func (s *schema) boundString(wire, in string) {
	if len(s.enum) != 0 {
		return // the list is the bound
	}
	if s.encoding == "base64" {
		s.maxLength = fileText
		return
	}
	if s.pattern == "" && (in == "path" || in == "query" || in == "body") {
		switch {
		case slices.Contains(repoNames, wire):
			s.pattern = repoPattern
		case slices.Contains(ownerNames, wire) && in == "path", wire == "owner", wire == "username":
			s.pattern = ownerPattern
		case in == "path" && (wire == "secretname" || wire == "variablename"):
			s.pattern = namePattern
		}
	}
	if in == "path" && s.pattern == "" {
		s.minLength = 1
	}
	if s.maxLength != 0 {
		return
	}
	switch {
	case s.format == "date-time" || s.format == "date":
		s.maxLength = 40
	case s.pattern != "":
		s.maxLength = 100
	case in == "query" && wire == "body":
		s.maxLength = manyText
	case slices.Contains(fileNames, wire):
		s.maxLength = fileText
	case slices.Contains(longNames, wire):
		s.maxLength = longText
	case wire == "filepath" || wire == "path" || wire == "from_path":
		s.maxLength = pathText
	case in == "query":
		s.maxLength = queryText
	default:
		s.maxLength = shortText
	}
}

// maxLimit bounds a page size. The server has a bound of its own, 50 unless its
// administrator set another, and the result tells which size it used.
const maxLimit = 1000

func (s *schema) boundInteger(wire, in string) {
	one, zero, most := int64(1), int64(0), int64(maxLimit)
	paging := in == "query" && (wire == "page" || wire == "limit" || wire == "per_page")
	if s.minimum == nil {
		s.minimum = &zero
	}
	if (in == "path" || paging || wire == "index") && *s.minimum < 1 {
		s.minimum = &one // a page size of 0 means the default, which is no answer to a question
	}
	if wire == "limit" && paging && (s.maximum == nil || *s.maximum > most) {
		s.maximum = &most
	}
}

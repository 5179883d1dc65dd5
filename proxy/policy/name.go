package policy

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ownerName returns the name of an account as Gitea compares it. Gitea's names are ASCII
// letters, digits, '-', '_' and '.'; whatever else is in one (a slash, a percent sign, a
// look-alike from another script) names nothing that can be judged. Escapes and look-alikes
// are not decoded here, since each decoder in front of Gitea might decode them in its own
// way.
func ownerName(s string) (string, bool) {
	if len(s) > maxName || strings.Trim(s, ".") == "" || strings.Trim(s, nameBytes) != "" {
		return "", false
	}
	return strings.ToLower(s), true
}

// maxName bounds a name that is judged, in bytes; Gitea's own end at 100.
const maxName = 255

const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// repoName is ownerName for repositories. No repository can have a name that ends
// in one of Gitea's reserved endings, so such a name is judged without it.
func repoName(s string) (string, bool) {
	name, ok := ownerName(s)
	// Again and again: x.git.wiki is x as well.
	for ok {
		short := name
		for _, end := range []string{".git", ".wiki", ".rss", ".atom"} {
			short = strings.TrimSuffix(short, end)
		}
		if short == name {
			return name, strings.Trim(name, ".") != ""
		}
		name, ok = ownerName(short)
	}
	return "", false
}

// fullName judges "owner/name". It is for names that Gitea has written, such as full_name.
func fullName(s string) (owner, repo string, ok bool) {
	owner, repo, found := strings.Cut(s, "/")
	if !found {
		return "", "", false
	}
	owner, ok1 := ownerName(owner)
	repo, ok2 := repoName(repo)
	return owner, repo, ok1 && ok2
}

// refNames returns every name that Gitea could take a branch or tag for: as it
// is, and without the words that git puts before names. It fails for what git
// takes for no name, so that nothing is judged as one thing and read as another.
func refNames(s string) ([]string, bool) {
	if !validRef(s) {
		return nil, false
	}
	names := []string{s}
	// Git tries refs/, refs/heads/ and refs/tags/ before a name, and Gitea cuts some of
	// them, so heads/main and refs/heads/main can both be main.
	for {
		short := s
		for _, start := range []string{"refs/", "heads/", "tags/"} {
			short = strings.TrimPrefix(short, start)
		}
		if short == s {
			return names, true
		}
		if s = short; s == "" {
			return nil, false
		}
		names = append(names, s)
	}
}

// validRef is git's check-ref-format for a name with or without slashes. What git would
// refuse anyway is refused here, as a later version of Gitea could clean it into a valid
// name instead.
func validRef(s string) bool {
	if s == "" || len(s) > maxRef || !utf8.ValidString(s) || s == "@" || s[0] == '-' || strings.HasSuffix(s, ".") ||
		strings.Contains(s, "..") || strings.Contains(s, "@{") || strings.ContainsAny(s, " ~^:?*[\\") {
		return false
	}
	for seg := range strings.SplitSeq(s, "/") {
		if seg == "" || seg[0] == '.' || strings.HasSuffix(seg, ".lock") {
			return false
		}
	}
	return !strings.ContainsFunc(s, hidden)
}

// maxRef bounds a ref that is judged, in bytes.
const maxRef = 1024

// hidden reports characters that no reader sees, and so no pattern means.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError
}

// isCommit reports whether a revision is a commit's hash, perhaps a short one. A branch may
// have such a name; taking it for a hash refuses it where a hash would be refused, and
// nowhere opens it.
func isCommit(s string) bool {
	return len(s) >= 4 && len(s) <= 64 && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// filePath reports whether Gitea and git read a path as it is written. Gitea cleans paths
// before it writes, so a path with dots in it would be judged as one file and written as
// another.
func filePath(s string) bool {
	if len(s) > maxPath || !utf8.ValidString(s) || strings.Contains(s, `\`) || strings.ContainsFunc(s, hidden) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(s, "/"), func(seg string) bool {
		return seg == "" || seg == "." || seg == ".."
	})
}

// maxPath bounds a path that is judged, in bytes.
const maxPath = 4096

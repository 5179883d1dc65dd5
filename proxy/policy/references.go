package policy

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
)

// References in texts to issues, pull requests and commits of other repositories. Gitea
// leaves a mark at the other end, and a pull request's text or a commit's message closes
// and reopens what it refers to. Titles and messages of commits are read as they are;
// other texts as what is left of their Markdown, without most of its signs and with the
// lines joined that end with a hard break. Nothing here decides which of the two a text is:
// every reading is judged. testdata/references.jsonl says what Gitea itself reads.

const textReference = "a text refers to an issue, pull request or commit of a repository " +
	"that this endpoint may not reach; leave the reference out"

const textDoubtful = "a text holds something that Gitea may read as a reference to another repository; " +
	"refer to issues as #12, owner/name#12 or by the address of their page, with one slash between names"

// references judges the repositories that a written text refers to. A mark at the other end
// is a write to a repository that the team may not reach, and shows people there what the
// agent wrote. Mentions of people and teams are not judged: Gitea tells only those who may
// read the repository that the text is in.
func (s *session) references() (found *denial) {
	if !s.p.scope.restricts() {
		return nil
	}
	patch := false
	read := s.strings(func(_ string, text string, isFile bool) bool {
		switch {
		case !isFile:
			found = s.referred(text)
		case s.op.site.Patch:
			patch = patch || patchesTemplate(text)
		}
		return found == nil
	})
	switch {
	case !read:
		return deny(s.p.scope.name(), textUnread)
	case found != nil:
		return found
	case patch:
		return s.template()
	}
	return s.each(s.p.scope.name(), s.op.site.Paths, func(name string) *denial {
		if strings.HasPrefix(strings.ToLower(path.Clean("/"+name)), "/"+mergeTemplates) {
			return s.template()
		}
		return nil
	})
}

// mergeTemplates is where Gitea takes the message of a merge from when the merge brings
// none. It puts titles and texts of pull requests into them, so what such a message will
// refer to cannot be told from the file.
const mergeTemplates = ".gitea/default_merge_message"

func (s *session) template() *denial {
	return deny(s.p.scope.name(), "files in "+mergeTemplates+" are messages of later merges and can refer to any "+
		"repository; ask a person to write them")
}

// quotedPath finds the head of a file in a patch whose path is quoted: it may be any path.
var quotedPath = regexp.MustCompile(`(?m)^(?:diff --git|\+\+\+|(?:rename|copy) to) .*"`)

// patchesTemplate reports whether a patch may write a template of merge messages.
func patchesTemplate(patch string) bool {
	return strings.Contains(strings.ToLower(patch), mergeTemplates) || quotedPath.MatchString(patch)
}

// referred judges the references in one text.
func (s *session) referred(text string) *denial {
	// The expressions cost far more than the search for a sign that they need.
	if strings.ContainsAny(text, "#!") && strings.Contains(text, "/") {
		if d := s.shorts(text); d != nil {
			return d
		}
	}
	for _, word := range []string{"/issues/", "/pulls/", "/commit/"} {
		if strings.Contains(text, word) {
			return s.pages(text)
		}
	}
	return nil
}

// refers judges one repository that a text refers to.
func (s *session) refers(owner, repo string) *denial {
	if d := s.judge(owner, repo); d != nil {
		return deny(d.rule, textReference)
	}
	return nil
}

func (s *session) doubtful() *denial { return deny(s.p.scope.name(), textDoubtful) }

// A line break that Gitea takes out, with what Markdown allows before the next line's text.
var hardBreak = regexp.MustCompile(`(?:\\|[ \t\v\f\r]*  )\r?\n[ \t\v\f>]*`)

// joint stands for such a break in a text. Whether Gitea takes it out depends on what is
// around it, so both are judged. The texts themselves lose theirs before.
const joint = "\x00"

var shortReference = regexp.MustCompile(`([A-Za-z0-9._\x00-]+)/([A-Za-z0-9._\x00-]+)[#!]\x00*[0-9]+`)

// shorts judges owner/name#1 and owner/name!1.
func (s *session) shorts(text string) *denial {
	text = strings.ReplaceAll(text, joint, "?")
	if strings.Contains(text, "\n") {
		text = hardBreak.ReplaceAllLiteralString(text, joint)
	}
	for _, m := range shortReference.FindAllStringSubmatchIndex(text, -1) {
		owner, repo := text[m[2]:m[3]], strings.ReplaceAll(text[m[4]:m[5]], joint, "")
		if continues(text[m[1]:]) {
			continue
		}
		if d := s.shortOwners(owner, repo); d != nil {
			return d
		}
		switch whole := strings.ReplaceAll(owner, joint, ""); leads(text[max(0, m[2]-maxReference):m[2]], whole) {
		case leadsCut:
			return s.doubtful()
		case leadsReference:
			if d := s.refers(whole, repo); d != nil {
				return d
			}
		}
	}
	return nil
}

// continues reports whether the text behind a number makes it no number, as in #1-intro.
func continues(rest string) bool {
	return rest != "" && (rest[0] == '-' || alphanumeric(rest[0]))
}

// shortOwners judges the owners that begin within a name: at one of the breaks, if that one
// is not taken out, and behind an underscore that is a sign of Markdown's.
func (s *session) shortOwners(owner, repo string) *denial {
	real := make([]byte, 0, maxName) // backwards
	for i := len(owner) - 1; i > 0 && len(real) < maxName; i-- {
		if owner[i] == joint[0] {
			continue
		}
		real = append(real, owner[i])
		if owner[i-1] != joint[0] && !emphasizes(owner, i-1) {
			continue
		}
		suffix := bytes.Clone(real)
		slices.Reverse(suffix)
		if d := s.refers(string(suffix), repo); d != nil {
			return d
		}
	}
	return nil
}

// emphasizes reports whether the byte at i may be an underscore that begins emphasis,
// which it does not behind letters and digits.
func emphasizes(name string, i int) bool {
	return name[i] == '_' && (i == 0 || !alphanumeric(name[i-1]))
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// What stands before owner/name#1 makes of it.
const (
	leadsReference = iota
	leadsElsewhere // a part of a path or an address
	leadsCut       // Gitea may end an address within the owner, and begin a reference there
)

// longestLabel is where an e-mail address ends within a word.
const longestLabel = 63

// leads says what the text before a reference makes of it.
func leads(before, owner string) int {
	run := before[strings.LastIndexAny(before, " \t\v\f\r\n<>")+1:]
	switch {
	case strings.Contains(owner, "www."):
		return leadsCut
	case strings.HasSuffix(run, "/"):
		return leadsElsewhere
	case len(owner) > longestLabel, strings.Contains(run, "www."):
		return leadsCut
	case strings.HasSuffix(run, "]:"): // a footnote
		return leadsReference
	case strings.HasSuffix(run, ":"), strings.HasSuffix(run, "="), strings.HasSuffix(run, "@"):
		return leadsElsewhere
	}
	return leadsReference
}

// maxReference bounds what is looked at before two names, in bytes: a scheme, a host and
// a folder that Gitea is mounted at fit.
const maxReference = 1024

var (
	pageReference = regexp.MustCompile(`([A-Za-z0-9._-]*)/([A-Za-z0-9._-]+)/(?:issues|pulls|commit)/\+?[0-9a-fA-F]`)
	scheme        = regexp.MustCompile(`\A[A-Za-z][A-Za-z0-9+.-]*:`)
	// What begins an address without any sign before it, if there is an address further on in the line.
	bareScheme = regexp.MustCompile(`(?:https?|ftp):`)
)

// pages judges the addresses of pages. Gitea acts on numbers and hashes only; "issues/new" is a page.
// It does not look at an address's scheme, and takes one without a host for its own.
func (s *session) pages(text string) *denial {
	for _, m := range pageReference.FindAllStringSubmatchIndex(text, -1) {
		if m[2] == 0 || text[m[2]-1] != '/' {
			continue // a path from nowhere
		}
		owner, repo := text[m[2]:m[3]], text[m[4]:m[5]]
		for _, folder := range s.p.folders(text[:m[2]]) {
			// Gitea makes owner/name#1 of an address in which it finds four names behind the
			// folder that it is mounted at and a slash, and joins it with the word before:
			// the owner then is not the one that is written here.
			if owner == "" || strings.HasSuffix(folder, "//") || s.p.mounted && folder == "/" {
				return s.doubtful()
			}
			if d := s.refers(owner, repo); d != nil {
				return d
			}
		}
	}
	return nil
}

// folders returns the paths before the names of a page, one for each way to read the
// text before them as the beginning of an address of Gitea's. Every pair of slashes may
// begin a host: one address may stand inside another.
func (p *Policy) folders(before string) (out []string) {
	begin := max(0, len(before)-maxReference)
	if i := strings.LastIndexAny(before[begin:], " \t\v\f\r\n<>"); i >= 0 {
		begin += i + 1
	} else if begin > 0 {
		return []string{before[begin:]} // too long to be understood
	}
	run := before[begin:]
	for i := 0; i+2 < len(run); i++ {
		if run[i:i+2] != "//" {
			continue
		}
		// Without a slash behind it, the host is what was taken for the owner.
		if n := strings.IndexByte(run[i+2:], '/'); n >= 0 && p.ours(run[i+2:i+2+n]) {
			out = append(out, run[i+2+n:])
		}
	}
	for _, rest := range opened(before[:begin], run) {
		rest = rest[len(scheme.FindString(rest)):]
		if strings.HasPrefix(rest, "/") && !strings.HasPrefix(rest, "//") {
			out = append(out, rest)
		}
	}
	return out
}

// opened returns what follows each sign in a run, or right before it, that begins an
// address in Markdown.
func opened(before, run string) (out []string) {
	outside := strings.TrimRight(before, " \t\v\f\r\n<>")
	if strings.HasSuffix(before, "<") || strings.HasSuffix(outside, "](") || strings.HasSuffix(outside, "]:") {
		out = append(out, run)
	}
	for i := 0; i+2 <= len(run); i++ {
		if sign := run[i : i+2]; sign == "](" || sign == "]:" {
			out = append(out, run[i+2:])
		}
	}
	for _, m := range bareScheme.FindAllStringIndex(run, -1) {
		out = append(out, run[m[1]:])
	}
	return out
}

// ours reports whether a host may be Gitea's.
func (p *Policy) ours(host string) bool {
	// user@host is a link to host; none is Gitea's, as in a link that is a path.
	host = host[strings.LastIndexByte(host, '@')+1:]
	if len(p.hosts) == 0 || host == "" {
		return true
	}
	for _, h := range p.hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return false
}

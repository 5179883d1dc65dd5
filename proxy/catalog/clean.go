package catalog

import "strings"

// clean turns what a question says about particular things into what kind of things they
// are: "#12" is an issue or a pull request, "acme/infra" a repository, "main.go" a file.
// Names in quotes and texts like DOCKER_PASSWORD say nothing about which tool is meant, and
// neither does politeness. It runs before words are stemmed, since capitals, dots and
// slashes are what distinguishes a name from a word.
func clean(text string) string {
	var out []string
	fields := strings.Fields(unquoted(text))
	for n, w := range fields {
		// A sign at the end of a word ends a clause, unless it ends the question.
		stop := n+1 < len(fields) && len(w) > 2 && strings.ContainsAny(w[len(w)-1:], ",;.:?!")
		mark := markStop
		if strings.HasSuffix(w, ":") {
			mark = markText
		}
		// .gitignore and .gitea/workflows are files too.
		if strings.HasPrefix(w, ".git") || capitalFiles[w] {
			w = "a.file"
		}
		// Behind the tests above: the dot of .gitignore is part of its name.
		w = strings.Trim(w, ".,;:!?()[]{}<>`\"'*")
		if lower := strings.ToLower(w); lower == "let's" || lower == "let’s" || lower == "lets" {
			continue // "let's list" asks for the list, nothing is to be allowed
		}
		if i := strings.LastIndexAny(w, "'’"); i > 0 && len(w)-i <= 4 {
			w = w[:i] // what's
		}
		if strings.Contains(w, "_") && strings.ToUpper(w) == w {
			continue // NPM_TOKEN
		}
		out = append(out, kindOf(strings.ToLower(w), out)...)
		if stop {
			out = append(out, mark)
		}
	}
	text = " " + strings.Join(out, " ") + " "
	return polite.Replace(polite.Replace(text)) // "could you please" is two
}

// polite cuts the beginnings and fillings in which nothing is asked for yet, so
// that the "I" of "I want to" is not taken for the caller's own things.
var polite = func() *strings.Replacer {
	var pairs []string
	for line := range strings.Lines(courtesies) {
		said, meant, _ := strings.Cut(strings.TrimSpace(line), ": ")
		for s := range strings.SplitSeq(strings.TrimSuffix(said, ":"), ",") {
			pairs = append(pairs, " "+strings.TrimSpace(s)+" ", strings.TrimRight(" "+meant, " ")+" ")
		}
	}
	return strings.NewReplacer(pairs...)
}()

// courtesies are what is said and, behind the colon, what it means; an earlier one goes
// before a later one that begins alike.
const courtesies = `whats: what
wheres: where
whos: who
can you, could you, would you, will you, please, pls, plz, i would like to know, do you know:
remind me, send me: show
i need a, i want a: create a
i want to, i need to, i like to, i would like to, i d like to, i have to, help me, how do i, how can i:
how to, can i, i want, i need, for me:
let me know, give me, get me, tell me, show me, let me see, bring me: show`

// unquoted cuts what is in double quotes, unless next to nothing is left.
func unquoted(text string) string {
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == '"' || r == '“' || r == '”' })
	if len(parts) < 2 {
		return text
	}
	var b strings.Builder
	first := 0
	if strings.HasPrefix(text, `"`) || strings.HasPrefix(text, "“") {
		first = 1
	}
	for i := first; i < len(parts); i += 2 {
		b.WriteString(parts[i] + " ")
	}
	// A question that is all quotation is meant as it is.
	if len(strings.Fields(b.String())) < 2 {
		return text
	}
	return b.String()
}

// kindOf returns the words that stand for one word of a question. Names of objects become
// marks (see marks). The order matters: a path with a number sign is an issue of a
// repository and no file.
func kindOf(w string, before []string) []string {
	last := ""
	if len(before) > 0 {
		last = before[len(before)-1]
	}
	owner, repo, slash := strings.Cut(w, "/")
	switch {
	case w == "":
		return nil
	case isNumber(strings.TrimLeft(w, "#!")):
		if w[0] == '#' || w[0] == '!' {
			return []string{markNumber}
		}
		return []string{w}
	case slash && strings.Contains(w, "#"): // acme/infra#12
		return []string{markNumber}
	case strings.Contains(w, "@") && w[0] != '@':
		return []string{markMail}
	case w[0] == '@':
		return nil
	case shaLike(w):
		return []string{"0"} // a number like any other
	case slash && repo == "": // docs/
		return []string{"folder"}
	// A leading slash, three segments or an ending: a path.
	case slash && (owner == "" || strings.Contains(repo, "/") || fileLike(repo)):
		return []string{markFile}
	// CI/CD is two words, and feature/login is the name of a branch: the word "branch"
	// says all that is needed.
	case slash && (abbreviations[owner] || branchPrefixes[owner] || last == "branch"):
		if abbreviations[owner] {
			return []string{owner, repo}
		}
		return nil
	case slash:
		return []string{markRepo}
	case fileLike(w):
		return []string{markFile}
	}
	return []string{w}
}

// Marks stand for the names of objects in a cleaned question. They begin with a digit
// so that no word of a question is one by chance; a person who writes one anyway only
// gets other results.
const (
	markNumber = "0num"
	markRepo   = "0rep"
	markFile   = "0doc"
	markMail   = "0adr"
	markStop   = "0end" // the end of a clause
	markText   = "0col" // a colon
)

// isNumber reports whether a word is made of digits alone: ids and numbers, never with
// a sign.
func isNumber(w string) bool { return w != "" && strings.Trim(w, "0123456789") == "" }

// shaLike reports whether a word looks like the id of a commit. What is shorter is a number
// or a word more often; git itself shows seven digits or more.
func shaLike(w string) bool {
	return len(w) >= 6 && len(w) <= 64 && strings.Trim(w, "0123456789abcdef") == "" &&
		strings.ContainsAny(w, "0123456789") // "facade" is a word
}

// fileLike reports whether a word looks like a file's name: main.go, but not v1.2 and not
// e.g. By the form of the ending, as a list of endings would never be complete.
func fileLike(w string) bool {
	i := strings.LastIndexByte(w, '.')
	if i < 2 || len(w)-i < 3 || len(w)-i > 6 {
		return false
	}
	return strings.Trim(w[i+1:], "abcdefghijklmnopqrstuvwxyz") == ""
}

// allCapitalFile reports whether a word is a file that has a capital name by custom.
var capitalFiles = wordSet("LICENSE CHANGELOG CONTRIBUTING CODEOWNERS AUTHORS NOTICE SECURITY")

// branchPrefix reports whether a word is how names of branches begin.
var branchPrefixes = wordSet(`
feature feat fix bugfix hotfix release releases chore topic origin dev user refs`)

// isAbbreviation reports whether a word before a slash is no name: CI/CD, PR/issue.
var abbreviations = wordSet(`
ci pr mr and issue issues pull prs read add create edit list secrets branch branches tag`)

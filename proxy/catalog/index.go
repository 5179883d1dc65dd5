package catalog

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

// Weights of the places where a word is found, and the constants of BM25.
const (
	weightName        = 3.0
	weightTitle       = 2.5
	weightDescription = 1.0
	weightArgument    = 0.5
	weightAsked       = 0.75

	bm25K = 1.2
	bm25B = 0.3
)

// index answers free-text questions about tools by BM25 over weighted fields (Robertson et
// al., "Simple BM25 extension to multiple weighted fields"). It is built from the tools of
// one set and never changes, so searches need no lock.
type index struct {
	docs    []doc
	terms   map[string][]posting
	vocab   []string        // sorted
	verbs   map[string]bool // first words of names that are no generic verbs, stemmed
	named   map[string]bool // words of names and titles
	owned   map[string]bool // what people have of their own
	phrases phraseIndex
}

// doc is one tool. Its name is a verb and what the verb is about; the domain is
// what a tool without more words is about (gitea_issue_lock).
type doc struct {
	n       int // in the index
	tool    *proxy.Tool
	length  float64
	verb    string   // stem of the first word of the action
	object  []string // stems of the rest, variants aside; of the domain if there is no rest
	variant []string // whose thing it is: admin, organization, my, user, repository
	domain  string   // stem
}

// posting is one document that has a term, with the term's weighted count.
type posting struct {
	doc   int
	count float64
}

// newIndex reads the words of all tools. Only searches need them, so the first one
// waits for it and not the start.
func newIndex(tools []*proxy.Tool, asked map[string][]string) *index {
	ix := &index{
		terms: map[string][]posting{}, verbs: map[string]bool{}, named: map[string]bool{},
		owned: wordSet("profil account"), // words for "my" that no tool's name has
	}
	total := 0.0
	for n, t := range tools {
		d := newDoc(t)
		d.n = n
		if !genericVerbs[d.verb] {
			ix.verbs[d.verb] = true
		}
		name := strings.TrimPrefix(t.Name, "gitea_")
		for _, w := range words(name + " " + t.Title) {
			ix.named[w] = true
		}
		// "my" in a question says something of the tool only where tools make that
		// difference.
		if slices.Contains(d.variant, "my") {
			ix.owned[d.verb] = true
			for _, w := range append(d.object, d.domain) {
				ix.owned[w] = true
			}
		}
		// Weights are added before saturation, as BM25F has it: a word in name and
		// description is one strong word, not two.
		counts := map[string]float64{}
		for _, f := range []struct {
			text   string
			weight float64
		}{
			{name, weightName}, {t.Title, weightTitle},
			{ownWords(t.Description), weightDescription}, {argumentText(t), weightArgument},
			{strings.Join(asked[t.Name], " "), weightAsked},
		} {
			for _, w := range words(f.text) {
				counts[w] += f.weight
			}
		}
		for _, p := range append([]string{name, t.Title}, asked[t.Name]...) {
			ix.phrases.add(n, p)
		}
		for w, c := range counts {
			d.length += c
			ix.terms[w] = append(ix.terms[w], posting{n, c})
		}
		total += d.length
		ix.docs = append(ix.docs, d)
	}
	for i := range ix.docs {
		// Relative to the mean, which is all that BM25 needs of it.
		ix.docs[i].length /= total / float64(len(tools))
	}
	ix.vocab = slices.Sorted(maps.Keys(ix.terms))
	ix.phrases.finish(len(tools))
	return ix
}

// newDoc takes a tool's name apart. Names are regular ([spec.Parse] refuses others), so no
// list says which word is what.
func newDoc(t *proxy.Tool) doc {
	d := doc{tool: t, domain: stem(t.Domain)}
	list := words(strings.TrimPrefix(t.Name, "gitea_"+t.Domain+"_"))
	for i, w := range list {
		switch {
		case i == 0:
			d.verb = w
		// A variant is one before other words, or behind "in": list_my_repositories,
		// search_in_organization.
		case variants[w] && (i < len(list)-1 || list[i-1] == "in"):
			d.variant = append(d.variant, w)
		case !stopWords[w]:
			d.object = append(d.object, w)
		}
	}
	if t.Domain == "admin" {
		d.variant = append(d.variant, "admin")
	}
	// gitea_issue_lock is about an issue, gitea_user_get_by_id about a user.
	if len(d.object) == 0 || len(list) > 1 && list[1] == "by" {
		d.object = append(d.object, d.domain)
	}
	return d
}

// isVariant reports whether a word of a name says whose thing is meant.
var variants = wordSet("admin organization my user repository")

// ownWords is a description without the names of other tools: what they do
// this one does not.
func ownWords(text string) string {
	var b strings.Builder
	for _, w := range strings.Fields(text) {
		if !strings.HasPrefix(w, "gitea_") {
			b.WriteString(w + " ")
		}
	}
	return b.String()
}

// argumentText returns the names and words of a tool's arguments but the ones that nearly
// every tool has. From the complete schema: that of the list lacks the words of common
// arguments.
func argumentText(t *proxy.Tool) string {
	var b strings.Builder
	for name, schema := range jsonscan.Members(jsonscan.Member(t.InputSchema, "properties")) {
		switch n := jsonscan.Unquote(name); n {
		case "owner", "repo", "org", "page", "limit", "fields", "cursor":
		default:
			b.WriteString(n + " ")
			if d := jsonscan.Member(schema, "description"); d != nil {
				b.WriteString(jsonscan.Unquote(d) + " ")
			}
			b.Write(bytes.ReplaceAll(jsonscan.Member(schema, "enum"), []byte(`"`), []byte(" ")))
			b.WriteByte(' ')
		}
	}
	return b.String()
}

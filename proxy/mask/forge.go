package mask

// forgeToken recognises the tokens of Gitea and Forgejo, which look like the
// name of a commit, by what they are behind.
type forgeToken struct{ assignment }

// forgeWord is the keyword behind which a blank is enough: "Authorization: token
// 0123…", "the token 0123…".
const forgeWord = "token"

// find permits a blank in the operator's place behind forgeWord alone: "gitea" and a
// blank before a commit is ordinary prose.
func (f *forgeToken) find(s *scan, variant, pos int) finding {
	a := f.assignment
	a.bare = a.keywords[variant] == forgeWord
	return a.find(s, variant, pos)
}

// isForgeToken reports whether v has the shape of a token of Gitea or Forgejo:
// 20 random bytes in hexadecimal.
func isForgeToken(v []byte) bool {
	return len(v) == 40 && run(v, isLowerHex, unbounded) == 40 && entropy(v) >= shapeEntropy
}

var isLowerHex = newClass("0-9a-f")

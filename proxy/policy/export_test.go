package policy

import "aegis/proxy"

// Unjudged returns the arguments of a tool that look as if they named something
// and that no entry of the table is about, and Places those that its entry names.
func Unjudged(t *proxy.Tool) (unknown string, places map[string]bool, err error) {
	table, err := loadSites()
	if err != nil {
		return "", nil, err
	}
	op := newOperation(t, table[t.OperationID])
	return op.unknownRepo + op.unknownFile, op.site.places(), nil
}

// Reach returns how the table says that a tool's answers are judged.
func Reach(t *proxy.Tool) (reach, rows string, err error) {
	table, err := loadSites()
	if err != nil || table[t.OperationID] == nil {
		return "", "", err
	}
	return table[t.OperationID].Reach, table[t.OperationID].Rows, nil
}

// Entries returns the operations that the table knows.
func Entries() (ids []string, err error) {
	table, err := loadSites()
	for id := range table {
		ids = append(ids, id)
	}
	return ids, err
}

// Match compiles a pattern and matches a text with it.
func Match(pattern, text string, fold bool) (bool, error) {
	g, err := newGlob(pattern, fold)
	if err != nil {
		return false, err
	}
	return g.match(text), nil
}

// Hooks for the black-box tests.
var (
	OwnerName = ownerName
	RepoName  = repoName
	RefNames  = refNames
	FilePath  = filePath
	NamedBy   = func(path string) string {
		p, found := namedBy(path)
		if !found {
			return ""
		}
		return p.owner + "/" + p.repo
	}
)

// Refers returns the rule that refuses a text for what it refers to, "" when none does.
func (p *Policy) Refers(text string) string {
	if d := (&session{p: p}).referred(text); d != nil {
		return d.rule
	}
	return ""
}

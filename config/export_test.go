package config

// RuleNames are the names of all rules that this package raises problems by.
func RuleNames() []string { return ruleNames[ruleOther+1:] }

// RuleOf returns the name of the rule that raised p.
func RuleOf(p Problem) string { return ruleNames[p.rule] }

// Nearest is the search for the candidate that a misspelt word means.
func Nearest(word string, candidates []string) string { return nearest(word, candidates) }

// Quote is how messages repeat a value.
func Quote(s string) string { return quote(s) }

package config

// RuleNames are the names of all rules that this package raises problems by.
func RuleNames() []string { return ruleNames[ruleOther+1:] }

// RuleOf returns the name of the rule that raised p.
func RuleOf(p Problem) string { return ruleNames[p.rule] }

// Quote is how messages repeat a value.
func Quote(s string) string { return quote(s) }

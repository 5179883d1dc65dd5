package match

import "slices"

// Rule is one kind of credential. Package mask recognises it by shape (Patterns), by the name
// that it is assigned to (Keywords and Values) or, with neither, by code that it has under the
// same Name; in texts of strangers Loose is what counts.
type Rule struct {
	// Name is what operators switch off and what hits are counted under; About and Guard, which
	// says what else keeps the rule from false positives, are for docs/masking.md.
	Name, About, Guard string
	// Patterns are the exact shapes, in the subset of RE2 that package mask compiles.
	Patterns []string
	// Must is a literal that is somewhere in the match.
	Must string
	// Keywords are names in lower case; a blank in one may be written as nothing, an underscore
	// or a hyphen. Up to Tail more characters of the name may follow.
	Keywords []string
	Tail     int
	// Values are the shapes of what is assigned.
	Values []string
	// Loose is an RE2 expression for texts of strangers, "" when the rule is not for them: they
	// cut tokens short and quote them in every manner, so it takes fragments as well. The
	// expressions of rules with Patterns must begin at a word; they are tried together, last.
	Loose string
	// Keep is what stays of a match of Loose, as [regexp.Regexp.Expand] writes it.
	Keep string
}

// Rules returns all rules in the order of their documentation.
func Rules() []Rule { return slices.Concat(shapes, named, forms) }

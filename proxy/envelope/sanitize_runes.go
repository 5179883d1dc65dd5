package envelope

import "unicode"

// class is what kind of hidden character a rune is.
type class uint8

const (
	visible  class = iota
	tag            // U+E0000 to U+E007F
	ignored        // what Unicode reserves to be drawn as nothing
	bidi           // embeddings, overrides, isolates
	mark           // LRM, RLM, ALM: single ones are part of right-to-left text
	joiner         // ZWJ, ZWNJ
	space          // zero-width space
	filler         // no width and no use in text
	selector       // variation selectors
)

func classOf(r rune) class {
	switch {
	case r < 0xAD:
		return visible
	case r == 0x200E || r == 0x200F || r == 0x061C:
		return mark
	case r == 0x200C || r == 0x200D:
		return joiner
	case r == 0x200B:
		return space
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
		return bidi
	case r >= 0x2060 && r <= 0x2065, r >= 0x206A && r <= 0x206F, r == 0xFEFF, r == 0x180E, r == 0x034F,
		r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0, r >= 0xFFF9 && r <= 0xFFFB:
		return filler
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF:
		return selector
	case r >= 0xE0000 && r <= 0xE007F:
		return tag
	case r >= 0xE0080 && r <= 0xE0FFF, r >= 0xFFF0 && r <= 0xFFF8, r >= 0x1BCA0 && r <= 0x1BCA3,
		r >= 0x1D173 && r <= 0x1D17A, r == 0x17B4, r == 0x17B5:
		return ignored // Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties
	case r >= 0x180B && r <= 0x180D, r == 0x180F:
		return selector
	}
	return visible
}

// pictorial reports whether r may be part of an emoji: whole blocks that have some, as
// emoji are added to them each year, and the few that stand alone (Unicode Technical
// Standard #51, emoji-data.txt).
func pictorial(r rune) bool {
	return r >= 0x1F000 && r <= 0x1FAFF || r >= 0x2190 && r <= 0x21FF || r >= 0x2300 && r <= 0x23FF ||
		r >= 0x25A0 && r <= 0x27BF || r >= 0x2900 && r <= 0x297F || r >= 0x2B00 && r <= 0x2BFF ||
		r == 0x3030 || r == 0x303D || r == 0x3297 || r == 0x3299 || r == 0x203C || r == 0x2049 ||
		r == 0x2122 || r == 0x2139 || r == 0xA9 || r == 0xAE
}

// keycap reports whether r is a base of keycap emoji.
func keycap(r rune) bool { return r >= '0' && r <= '9' || r == '#' || r == '*' }

// joins reports whether letters of r's script use joiners between them.
func joins(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Devanagari,
		unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu,
		unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
		unicode.Balinese, unicode.Javanese)
}

// breaks reports whether r's script marks words with zero-width spaces, as it writes none
// between them.
func breaks(r rune) bool {
	return unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}

// hasVariants reports whether r has standardized or ideographic variants other
// than the emoji ones (StandardizedVariants.txt, and the ideographic database of Unicode
// Technical Standard #37), by script and block: the lists have a hundred thousand pairs.
func hasVariants(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Myanmar, unicode.Mongolian, unicode.Phags_Pa) ||
		r >= 0x2200 && r <= 0x22FF || r >= 0x3000 && r <= 0x303F
}

// needed reports whether the text needs the one hidden character r between before
// and after; both are 0 at the ends of the text. Taking one out of Persian or Hindi
// text makes another word of it, and out of an emoji two.
func needed(before, r, after rune) bool {
	switch classOf(r) {
	case mark: // it moves text but hides none
		return true
	case joiner:
		emoji := func(x rune) bool { return pictorial(x) || x == 0xFE0F || x >= 0x1F3FB && x <= 0x1F3FF }
		if r == 0x200D && emoji(before) && pictorial(after) {
			return true
		}
		// At the end of a word, too: it keeps the last letter in the form that joins.
		return joins(before) && (after == 0 || joins(after) || !unicode.IsLetter(after))
	case space:
		return breaks(before) || breaks(after)
	case selector:
		if r == 0xFE0E || r == 0xFE0F {
			return pictorial(before) || keycap(before)
		}
		return hasVariants(before)
	}
	return false
}

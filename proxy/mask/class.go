package mask

// class is a set of bytes.
type class [256]bool

// newClass takes bytes and ranges of bytes as in a regular expression; a hyphen
// at the beginning or the end is itself. Nothing is escaped.
func newClass(spec string) *class {
	c := new(class)
	for i := 0; i < len(spec); i++ {
		if i+2 < len(spec) && spec[i+1] == '-' {
			for b := int(spec[i]); b <= int(spec[i+2]); b++ {
				c[b] = true
			}
			i += 2
			continue
		}
		c[spec[i]] = true
	}
	return c
}

// list returns the bytes of the class in ascending order.
func (c *class) list() []byte {
	var l []byte
	for b, in := range c {
		if in {
			l = append(l, byte(b))
		}
	}
	return l
}

func (c *class) overlaps(d *class) bool {
	for b := range c {
		if c[b] && d[b] {
			return true
		}
	}
	return false
}

// ASCII alone: bytes of longer characters are in no class, so that a letter with an
// accent ends a token as punctuation does.
var (
	isWord  = newClass("0-9A-Za-z_")
	isAlnum = newClass("0-9A-Za-z")
	isSpace = newClass(" \t\r\n")
)

// appendLower appends b in lower case, see [lower].
func appendLower(dst, b []byte) []byte {
	for _, c := range b {
		dst = append(dst, lower(c))
	}
	return dst
}

// lower folds ASCII only. unicode.ToLower is slower, and it would fold the Kelvin
// sign to k, which no keyword means.
func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

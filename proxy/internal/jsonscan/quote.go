package jsonscan

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// AppendQuote appends text to dst as a JSON string. Control characters, the
// quote and the backslash are escaped; U+2028 and U+2029 too, as some readers
// evaluate JSON as JavaScript; bytes that are not UTF-8 become U+FFFD. Nothing
// else is: <, > and & stay as they are.
func AppendQuote[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	return append(AppendEscaped(dst, text), '"')
}

// AppendEscaped is [AppendQuote] without the quotes.
func AppendEscaped[T string | []byte](dst []byte, text T) []byte {
	if b, ok := any(text).([]byte); ok {
		// Names and short texts come as strings, answers as bytes: only those are worth the vectors.
		if vectors {
			return appendVector(dst, b)
		}
		dst, _ = appendBy(dst, b, &once)
		return dst
	}
	from := 0
	for i := 0; i < len(text); {
		if plain[text[i]] {
			i++
			continue
		}
		// A copy, as a string cannot be a slice for nothing.
		var char [utf8.UTFMax]byte
		n := copy(char[:], text[i:])
		dst, n = appendOdd(append(dst, text[from:i]...), char[:n], 0)
		i += n
		from = i
	}
	return append(dst, text[from:]...)
}

func appendEscape(dst []byte, b byte) []byte {
	switch b {
	case '"', '\\':
		return append(dst, '\\', b)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&0xf])
}

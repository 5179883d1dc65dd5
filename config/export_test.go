package config

// Quote is how messages repeat a value.
func Quote(s string) string { return quote(s) }

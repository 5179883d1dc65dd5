package grant

// The prefixes of tokens.
const (
	AccessPrefix  = accessPrefix
	RefreshPrefix = refreshPrefix
	CodePrefix    = codePrefix
)

// CacheSize is how many entries each map of the cache has.
const CacheSize = cacheSize

// Mint returns the well-formed token of any body.
func Mint(prefix, body string) string { return mint(prefix, body) }

// Secret returns the secret of a refresh token.
func Secret(token string) string {
	t, _ := parseRefresh(token)
	return t.secret
}

// Cached returns how many entries the cache has.
func Cached(g *Grants) (tokens, used int) {
	g.cache.mu.Lock()
	defer g.cache.mu.Unlock()
	return len(g.cache.tokens), g.cache.used.Len()
}

// Same reports whether two resources are one.
func Same(a, b string) bool { return same(a, b) }

package match

// headerValue is a token68 of RFC 9110, section 11.2, of some length.
const headerValue = `[A-Za-z0-9._~+/=-]{8,}`

// forms are recognised by their surroundings; package mask has the code for each name.
var forms = []Rule{
	{Name: "private-key", About: "PEM, OpenSSH and PGP private keys; the body is masked, the BEGIN and END lines stay",
		Guard: "the body must begin with 16 characters of base64; PUBLIC KEY and CERTIFICATE blocks do not match",
		Loose: `-----BEGIN [A-Z ]+-----(?:.*?-----END [A-Z ]+-----|.*)`},
	{Name: "putty-key", About: "the private part of PuTTY key files",
		Guard: "lines of base64 must follow Private-Lines"},
	{Name: "url-password", About: "the password of scheme://user:password@host, or a random name of 20 characters and more without one",
		Guard: "templates and the passwords of manuals (user:pass, user:user) are left alone"},
	{Name: "authorization-header", About: "the credentials of an Authorization header, whatever the scheme",
		Keywords: []string{"authorization", "private-token", "x-api-key", "x-auth-token"}, Values: []string{headerValue},
		Guard: "the value must look random, or be the base64 of a name and a password",
		Loose: `(?i)\b((?:proxy-)?authorization|x-gitea-token|cookie|set-cookie)\b\s*[:=]\s*.*`, Keep: "$1: "},
	{Name: "bearer-token", About: "what follows the word Bearer",
		Keywords: []string{"bearer"}, Values: []string{headerValue},
		Guard: "16 characters and more that look random",
		Loose: `(?i)\b(bearer|basic|token)(\s+)[A-Za-z0-9._~+/=-]{16,}`, Keep: "$1$2"},
	{Name: "docker-auth", About: "the auth value of a Docker client configuration",
		Keywords: []string{"auth", "identitytoken"}, Values: []string{`[A-Za-z0-9+/=]{8,}`},
		Guard: "must be the base64 of a name and a password"},
	{Name: "netrc-password", About: "the password of a .netrc line",
		Keywords: []string{"password"}, Values: []string{`[!-!#-%'-;=?-[\]-~]{6,}`},
		Guard: "must follow machine, login and a name on the line"},
	{Name: "generic-assignment", About: "a value that looks random, assigned to a name that ends in token, secret, password, api_key, access_key or the like",
		Guard: "16 characters and more (12 for passwords) with letters, digits, many changes between them and 3.1 bits of entropy; words, paths, versions, hashes with their algorithm, calls and placeholders do not match",
		Keywords: []string{
			"token", "secret", "passwd", "password", "passphrase", "api key", "access key", "secret key", "private key", "auth key", "account key",
			"encryption key", "signing key", "master key", "credential", "credentials", "client secret", "storepass", "keypass",
		},
		Loose: `(?i)\b([a-z_-]*(?:token|secret|password|passwd|api_?key|sha1)["']?\s*[:=]\s*["']?)[^\s"',;&)\]]{4,}`, Keep: "${1}"},
}

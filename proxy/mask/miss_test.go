package mask_test

import (
	"encoding/base64"
	"math/rand/v2"
	"regexp/syntax"
	"strings"

	"aegis/proxy/mask"
)

// breakSecret makes a near miss of an example; k chooses how.
func breakSecret(r *rand.Rand, s mask.RuleSpec, in, secret string, k int) string {
	third := max(len(secret)/3, 1)
	cut := strings.Replace(in, secret, secret[:third], 1)
	hole := strings.Replace(in, secret, secret[:third]+"!!"+secret[third:], 1)
	switch {
	case s.Own:
		return breakOwn(r, s.Name, in, secret, k)
	case len(s.Keywords) > 0:
		key := s.Keywords[r.IntN(len(s.Keywords))]
		switch k % 5 {
		case 0:
			return cut
		case 1:
			return hole
		case 2:
			return key + " " + secret
		case 3:
			return "xq_" + key[1:] + "=" + strings.Repeat("a", len(secret))
		}
		return key + "=" + strings.Repeat("0", len(secret))
	}
	prefix := literalPrefix(s.Patterns[0])
	switch k % 5 {
	case 0:
		return cut
	case 1:
		return hole
	case 2:
		return "z" + in
	case 3:
		if len(prefix) >= 3 && strings.HasPrefix(in, prefix) {
			return prefix + strings.Repeat("x", len(in)-len(prefix))
		}
		return strings.Repeat("a", len(in))
	}
	if len(prefix) >= 3 && strings.HasPrefix(in, prefix) {
		return prefix[:1] + "#" + in[2:]
	}
	return hole
}

// literalPrefix returns what every match of the expression begins with.
func literalPrefix(expr string) string {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return ""
	}
	if re.Op == syntax.OpConcat {
		re = re.Sub[0]
	}
	if re.Op != syntax.OpLiteral {
		return ""
	}
	return string(re.Rune)
}

func breakOwn(r *rand.Rand, name, in, secret string, k int) string {
	word := func(n int) string { return random(r, n, "abcdefghijklmnopqrstuvwxyz") }
	pick := func(l ...string) string { return l[k%len(l)] }
	switch name {
	case "private-key":
		return pick(
			strings.ReplaceAll(in, "PRIVATE", "PUBLIC"),
			strings.NewReplacer("RSA PRIVATE KEY", "CERTIFICATE", "EC PRIVATE KEY", "CERTIFICATE", "OPENSSH PRIVATE KEY", "CERTIFICATE", "ENCRYPTED PRIVATE KEY", "CERTIFICATE", "PRIVATE KEY", "CERTIFICATE REQUEST").Replace(in),
			strings.Replace(in, "-----BEGIN", "----BEGIN", 1),
			strings.Replace(in, secret, "(your key here)", 1),
			strings.Replace(in, secret, word(12), 1),
			"\"-----BEGIN RSA PRIVATE KEY-----\" is the first line of "+word(20),
			"-----BEGIN PRIVATE KEY-----",
			"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI"+random(r, 43, alnum)+" bob@host",
			strings.Replace(in, "KEY-----\n", "KEY\n", 1),
			strings.Replace(in, "-----BEGIN", "-----END", 1),
		)
	case "putty-key":
		return pick(strings.Replace(in, "Private", "Public", 1), "Private-Lines: 6", "Private-Lines: "+word(8),
			"Private-Lines: 3\nnone\n", "Private-Lines 6\n"+secret) + word(k+1)
	case "url-password":
		return pick(
			"https://bob@git.example.org/"+word(8),
			"https://user:password@"+word(8)+".example.org",
			"https://bob:$PASSWORD@"+word(8)+".example.org",
			"https://${USER}:${PASS}@"+word(8)+".example.org",
			"mail bob:"+secret+"@example.org",
			"https://example.org:8080/@"+word(8),
			"https://example.org/a:b@"+word(8),
			"git@github.com:acme/"+word(8)+".git",
			"https://bob:***@"+word(8)+".example.org",
			"http://bob:bob@"+word(8)+".example.org",
		)
	case "authorization-header":
		return pick("Authorization: Bearer", "Authorization: Bearer <token>", "Authorization: "+word(30),
			"authorization of "+word(9),
			"Authorization header is missing for "+word(8), "Authorization: Bearer $TOKEN",
			"Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte(word(9))),
			"authorizations: 12", "Authorization: token "+word(20),
			"Authorization: Bearer ${{ secrets.X"+word(5)+" }}") + strings.Repeat(".", k/10)
	case "gitea-token":
		return pick("commit "+secret, "index "+secret, "gitea "+secret, "GITEA_SHA="+secret, "token "+secret+"0",
			"token "+secret[:39], "Authorization: token "+strings.Repeat("0", 40),
			"tokens "+secret, "token sha1:"+secret, "gitea@"+secret, "forgejo/"+secret,
			`{"sha":"`+secret+`"}`) + strings.Repeat(" ", 1+k/12)
	case "bearer-token":
		return pick("the bearer of "+word(20), "bearer authentication-scheme-"+word(9), "Bearer "+word(30),
			"Bearer <"+word(20)+">", "bearertoken-"+word(9),
			"Bearer realm=\"example\"", "Bearer {token}", "Bearer error=invalid_token", "forbearer "+word(9),
			"Bearer "+word(9)) + strings.Repeat(" ", 1+k/10)
	case "docker-auth":
		return pick(`{"auth": "`+base64.StdEncoding.EncodeToString([]byte(word(15)))+`"}`, `{"auth": true}`,
			`{"auth": "none"}`, `"auth": "`+word(17)+`"`, `"oauth": "`+secret+`"`,
			`"auth": ["`+word(9)+`"]`, `auth: `+word(12), `"auth": ""`, `"auths": "`+secret+`"`,
			`"auth":"`+word(5)+`:x"`) + strings.Repeat("\n", 1+k/10)
	case "netrc-password":
		return pick("machine x login y", "login bob password "+secret, "machine x password "+secret,
			"the password "+secret, "machine a login b passwords "+word(7),
			"machine\nlogin bob\npassword: x", "machine x login bob password", "machine learning password "+word(9),
			"login password "+word(9), "password "+word(9)) + strings.Repeat("\n", 1+k/10)
	}
	return pick("token = "+word(24), "secret: \"${SECRET_"+word(9)+"}\"",
		"api_key = os.Getenv(\"API_KEY_"+word(4)+"\")", "token: \"your-token-here-"+word(9)+"12\"",
		"password = config.database.password"+word(4), "secret_token := newTokenV2("+word(5)+")",
		"token_path: /var/run/secrets/token"+word(4)+"12", "tokenizer = \""+secret+"\"",
		"next_token=\""+strings.Repeat("a1", 12)+"\"", "token "+secret, "access_token: <"+secret+">", "api_key=xxxxxxxxxxxxxxxx"+word(4), "secret = \"0123456789abcdef0123456789abcdef\"",
		"token: sha256:"+random(r, 64, hexChars), "passwords.secret = "+word(22),
		"token = "+strings.ToUpper(word(20))+"_"+word(3)) + strings.Repeat(" ", k/16)
}

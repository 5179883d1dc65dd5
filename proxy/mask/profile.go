package mask

import "sync"

// commonText is a little of everything that the filter will see. Only the
// frequencies of its byte pairs are used, to choose anchors for custom rules:
// speed depends on them, correctness does not.
const commonText = `[{"id":1042,"url":"https://git.example.org/api/v1/repos/acme/site/issues/7","number":7,"user"` +
	`:{"login":"mira","full_name":"","email":"mira@example.org","avatar_url":"https://git.example.org/avatars/5f0d8b` +
	`2a","is_admin":false,"created_at":"2026-03-04T10:22:31Z"},"title":"Timeouts while the runner uploads artifacts"` +
	`,"body":"The job stops after 30 seconds and the log shows nothing else.\r\n\r\nSteps to reproduce:\n\n1. Start ` +
	`a workflow with a large artifact.\n2. Wait until the upload begins.\n\n- [ ] checked on main\n- [x] with v1.24.` +
	`2\nI think that this was introduced with #1234, because the client does not retry any more when the server answ` +
	`ers with 502.\n\n` +
	"```go\\nfunc (s *Server) handle(w http.ResponseWriter, r *http.Request) error {\\n\\tif err := s.check(r.Contex" +
	"t(), r.URL.Path); err != nil {\\n\\t\\treturn fmt.Errorf(\\\"check %q: %w\\\", r.URL.Path, err)\\n\\t}\\n\\tfor" +
	" i, item := range s.items {\\n\\t\\tif item.Name == name \\u0026\\u0026 len(item.Values) \\u003e 0 {\\n\\t\\t\\" +
	"tout = append(out, item.Values[i])\\n\\t\\t}\\n\\t}\\n\\treturn nil\\n}\\n```" +
	`","labels":[{"id":3,"name":"kind/bug","color":"ee0701","exclusive":false}],"state":"open","comments":12,"assign` +
	`ees":null,"milestone":null},2026-11-30T08:13:41.1234567Z ##[group]Run actions/checkout@v4\n2026-11-30T08:13:42.` +
	`7654321Z Downloading module github.com/stretchr/testify v1.9.0\ngithub.com/google/uuid v1.6.0 h1:NIvaJDMOsjHA8n` +
	`1jAhLSgzrAzy1Hgr+hNrb57e+94F0=\n{"sha":"9b7c1f0e4a6d23857c90be12fa345d6789abcdef","digest":"sha256:2c26b46b68ff` +
	`c68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae","size":20480,"encoding":"base64","content":"cGFja2FnZSBtY` +
	`WluCgppbXBvcnQgImZtdCIKCmZ1bmMgbWFpbigpIHsKCWZtdC5QcmludGxuKCJoZWxsbyIpCn0KL9j4AAQSkZJRgABAQAAAQABAAD2wBDAAgGBg` +
	`cGBQgHBwcJCQgKDBQN",The quick brown fox jumps over the lazy dog, and then it walks home through the forest to s` +
	`ee what others have written about it.\ndiff --git a/cmd/serve.go b/cmd/serve.go\nindex 83db48f..bf12a3c 100644\` +
	`n--- a/cmd/serve.go\n+++ b/cmd/serve.go\n@@ -12,7 +12,9 @@ import (\n \t\"context\"\n-\tcfg.Timeout = 30 * time` +
	`.Second\n+\tcfg.Timeout = opts.Timeout\n+\ttoken, err := loadToken(ctx, cfg.TokenFile)\n const defaultPassword ` +
	`= \"\"\n!function(e,t){"object"==typeof exports?module.exports=t():e.lib=t()}(this,function(){var n=[];return f` +
	`unction(r){return n.push(r),n.length>0&&void 0!==r.key}});  INFO  Building 412/1280 objects (32%) in 00:01:12, ` +
	`0 warnings, 0 errors; cache hit for key linux-amd64-0a1b2c3d4e5f\n`

// frequencies is the profile of commonText, made once.
var frequencies = sync.OnceValue(func() *profile { return newProfile([]byte(commonText)) })

// profile estimates how often byte pairs occur in text.
type profile [1 << 16]float32

// newProfile counts the pairs of text, smoothed, so that rare pairs are not taken for
// impossible ones.
func newProfile(text []byte) *profile {
	p := new(profile)
	var single [256]float32
	for i := range len(text) - 1 {
		p[pair(text[i], text[i+1])]++
		single[text[i]]++
	}
	n := float32(len(text) - 1)
	for a := range single {
		for b := range single {
			// What the sample lacks is as likely as its bytes apart would make
			// it, with a floor for bytes that it lacks altogether.
			apart := (single[a] + 0.2) / n * (single[b] + 0.2)
			i := pair(byte(a), byte(b))
			p[i] = (p[i] + 0.6*apart) / (1.6 * n)
		}
	}
	return p
}

// pair is the index of two bytes: the number that they are in little-endian order, as
// the filter reads them.
func pair(a, b byte) uint16 { return uint16(a) | uint16(b)<<8 }

// of returns the probability that a pair begins in a and ends in b.
func (p *profile) of(a, b []byte) float32 {
	if len(a) == 256 && len(b) == 256 {
		return 1
	}
	var sum float32
	for _, x := range a {
		for _, y := range b {
			sum += p[pair(x, y)]
		}
	}
	return sum
}

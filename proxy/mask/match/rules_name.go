package match

// Shapes that many services share. Alone they are no evidence: commits, digests and
// identifiers look the same.
const (
	hex32 = `[0-9a-f]{32}`
	hex40 = `[0-9a-f]{40}`
	uuids = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
)

// named are the built-in rules for secrets without a shape of their own:
// they are recognised by the name that they are assigned to. A blank in a keyword may be written as
// nothing, an underscore or a hyphen. A tail of 24 is for names of services, which say little of
// the rest of the name (DATADOG_PROD_API_KEY); where the keyword says secret itself, what follows
// is another name.
var named = []Rule{
	{Name: "gitea-token", About: "Gitea and Forgejo access and Actions tokens, 40 hexadecimal digits like a commit: in Authorization headers, behind the word token, or assigned to a name that ends in token, gitea, forgejo or gitea_pat",
		Keywords: []string{"authorization", "gitea", "forgejo", "gitea pat", "forgejo pat", "token"}, Values: []string{hex40},
		Guard: "a name and an operator, or token and a blank; no word characters behind the value, entropy 2.5; a digest elsewhere is left alone"},
	{Name: "gitea-app-secret", About: "SECRET_KEY, INTERNAL_TOKEN and the JWT secrets of app.ini", Keywords: []string{"secret_key", "jwt_secret", "internal_token", "lfs_jwt_secret"}, Values: []string{`[A-Za-z0-9_-]{43,64}`}},
	{Name: "gitea-session", About: "session and remember-me cookies of Gitea", Keywords: []string{"i_like_gitea", "gitea_incredible", "gitea_awesome"}, Values: []string{`[A-Za-z0-9%:_-]{16,160}`}},
	{Name: "gitea-runner-token", About: "registration token of a Gitea runner", Keywords: []string{"registration token", "runner token", "gitea runner registration token"}, Values: []string{`[A-Za-z0-9]{40}`}},
	{Name: "aws-secret-key", About: "AWS secret access key", Keywords: []string{"aws secret access key", "secret access key", "secretaccesskey", "aws secret key", "aws secret"}, Values: []string{`[A-Za-z0-9+/]{40}`}},
	{Name: "aws-session-token", About: "AWS session token", Keywords: []string{"aws session token", "sessiontoken", "aws security token"}, Values: []string{`[A-Za-z0-9+/=]{100,1000}`}},
	{Name: "datadog-key", About: "Datadog API and application keys", Keywords: []string{"datadog", "dd api key", "dd app key"}, Tail: 24, Values: []string{hex32, hex40}},
	{Name: "cloudflare-key", About: "Cloudflare global key and tokens without a prefix", Keywords: []string{"cloudflare", "cf api key", "cf api token"}, Tail: 24, Values: []string{`[0-9a-f]{37}`, `[A-Za-z0-9_-]{40}`}},
	{Name: "twilio-auth-token", About: "Twilio auth token", Keywords: []string{"twilio"}, Tail: 24, Values: []string{hex32}},
	{Name: "heroku-uuid", About: "Heroku API key in its old form", Keywords: []string{"heroku"}, Tail: 24, Values: []string{uuids}},
	{Name: "algolia-key", About: "Algolia admin key", Keywords: []string{"algolia"}, Tail: 24, Values: []string{hex32}},
	{Name: "okta-token", About: "Okta API token", Keywords: []string{"okta"}, Tail: 24, Values: []string{`00[A-Za-z0-9_-]{40}`}},
	{Name: "snyk-token", About: "Snyk API token", Keywords: []string{"snyk"}, Tail: 24, Values: []string{uuids}},
	{Name: "sumologic-key", About: "Sumo Logic access key", Keywords: []string{"sumologic", "sumo access key"}, Tail: 24, Values: []string{`[A-Za-z0-9]{64}`}},
	{Name: "fastly-token", About: "Fastly API token", Keywords: []string{"fastly"}, Tail: 24, Values: []string{`[A-Za-z0-9_-]{32}`}},
	{Name: "codecov-token", About: "Codecov upload token", Keywords: []string{"codecov"}, Tail: 24, Values: []string{uuids, hex32}},
	{Name: "launchdarkly-key", About: "LaunchDarkly access token", Keywords: []string{"launchdarkly", "ld sdk key"}, Tail: 24, Values: []string{`(?:sdk|api|mob)-` + uuids, `[a-z0-9_=-]{40}`}},
	{Name: "discord-client-secret", About: "Discord client secret", Keywords: []string{"discord client secret", "discord secret"}, Values: []string{`[A-Za-z0-9_-]{32}`}},
	{Name: "facebook-app-secret", About: "Facebook app secret", Keywords: []string{"facebook app secret", "facebook client secret", "fb app secret", "facebook secret"}, Values: []string{hex32}},
	{Name: "twitter-secret", About: "X (Twitter) API secrets", Keywords: []string{"twitter"}, Tail: 24, Values: []string{`[A-Za-z0-9]{50}`, `[0-9]{15,25}-[A-Za-z0-9]{20,40}`}},
	{Name: "asana-secret", About: "Asana client secret", Keywords: []string{"asana"}, Tail: 24, Values: []string{`[a-z0-9]{32}`}},
	{Name: "mattermost-token", About: "Mattermost access token", Keywords: []string{"mattermost"}, Tail: 24, Values: []string{`[a-z0-9]{26}`}},
	{Name: "travis-token", About: "Travis CI token", Keywords: []string{"travis"}, Tail: 24, Values: []string{`[A-Za-z0-9_-]{22}`}},
	{Name: "confluent-secret", About: "Confluent Cloud secret", Keywords: []string{"confluent"}, Tail: 24, Values: []string{`[A-Za-z0-9+/]{64}`}},
	{Name: "mistral-key", About: "Mistral and Cohere API keys", Keywords: []string{"mistral", "cohere"}, Tail: 24, Values: []string{`[A-Za-z0-9]{32}`, `[A-Za-z0-9]{40}`}},
	{Name: "cloudinary-secret", About: "Cloudinary API secret", Keywords: []string{"cloudinary"}, Tail: 24, Values: []string{`[A-Za-z0-9_-]{27}`}},
	{Name: "rapidapi-key", About: "RapidAPI key", Keywords: []string{"rapidapi"}, Tail: 24, Values: []string{`[A-Za-z0-9]{50}`}},
	{Name: "azure-openai-key", About: "Azure AI and search keys", Keywords: []string{"azure openai", "azure search", "azure api key", "cognitive"}, Tail: 24, Values: []string{hex32, `[A-Za-z0-9]{52}`, `[A-Za-z0-9]{84}`}},
}

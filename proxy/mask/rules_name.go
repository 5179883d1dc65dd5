package mask

// namedSpecs are the built-in rules for secrets without a shape of their own:
// the name they are assigned to tells. A blank in a keyword may be written as
// nothing, an underscore or a hyphen.
func namedSpecs() []spec {
	const (
		hex32 = `[0-9a-f]{32}`
		hex40 = `[0-9a-f]{40}`
		uuids = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	)
	return []spec{
		{name: "gitea-token", about: "Gitea and Forgejo access and Actions tokens, 40 hexadecimal digits like a commit: in Authorization headers, behind the word token, or assigned to a name that ends in token, gitea, forgejo or gitea_pat",
			own: newForgeToken, guard: "a name and an operator, or token and a blank; no word characters behind the value, entropy 2.5; a digest elsewhere is left alone"},
		{name: "gitea-app-secret", about: "SECRET_KEY, INTERNAL_TOKEN and the JWT secrets of app.ini", keywords: []string{"secret_key", "jwt_secret", "internal_token", "lfs_jwt_secret"}, values: []string{`[A-Za-z0-9_-]{43,64}`}},
		{name: "gitea-session", about: "session and remember-me cookies of Gitea", keywords: []string{"i_like_gitea", "gitea_incredible", "gitea_awesome"}, values: []string{`[A-Za-z0-9%:_-]{16,160}`}},
		{name: "gitea-runner-token", about: "registration token of a Gitea runner", keywords: []string{"registration token", "runner token", "gitea runner registration token"}, values: []string{`[A-Za-z0-9]{40}`}},
		{name: "aws-secret-key", about: "AWS secret access key", keywords: []string{"aws secret access key", "secret access key", "secretaccesskey", "aws secret key", "aws secret"}, values: []string{`[A-Za-z0-9+/]{40}`}},
		{name: "aws-session-token", about: "AWS session token", keywords: []string{"aws session token", "sessiontoken", "aws security token"}, values: []string{`[A-Za-z0-9+/=]{100,1000}`}},
		{name: "datadog-key", about: "Datadog API and application keys", keywords: []string{"datadog", "dd api key", "dd app key"}, tail: 24, values: []string{hex32, hex40}},
		{name: "cloudflare-key", about: "Cloudflare global key and tokens without a prefix", keywords: []string{"cloudflare", "cf api key", "cf api token"}, tail: 24, values: []string{`[0-9a-f]{37}`, `[A-Za-z0-9_-]{40}`}},
		{name: "twilio-auth-token", about: "Twilio auth token", keywords: []string{"twilio"}, tail: 24, values: []string{hex32}},
		{name: "heroku-uuid", about: "Heroku API key in its old form", keywords: []string{"heroku"}, tail: 24, values: []string{uuids}},
		{name: "algolia-key", about: "Algolia admin key", keywords: []string{"algolia"}, tail: 24, values: []string{hex32}},
		{name: "okta-token", about: "Okta API token", keywords: []string{"okta"}, tail: 24, values: []string{`00[A-Za-z0-9_-]{40}`}},
		{name: "snyk-token", about: "Snyk API token", keywords: []string{"snyk"}, tail: 24, values: []string{uuids}},
		{name: "sumologic-key", about: "Sumo Logic access key", keywords: []string{"sumologic", "sumo access key"}, tail: 24, values: []string{`[A-Za-z0-9]{64}`}},
		{name: "fastly-token", about: "Fastly API token", keywords: []string{"fastly"}, tail: 24, values: []string{`[A-Za-z0-9_-]{32}`}},
		{name: "codecov-token", about: "Codecov upload token", keywords: []string{"codecov"}, tail: 24, values: []string{uuids, hex32}},
		{name: "launchdarkly-key", about: "LaunchDarkly access token", keywords: []string{"launchdarkly", "ld sdk key"}, tail: 24, values: []string{`(?:sdk|api|mob)-` + uuids, `[a-z0-9_=-]{40}`}},
		{name: "discord-client-secret", about: "Discord client secret", keywords: []string{"discord client secret", "discord secret"}, values: []string{`[A-Za-z0-9_-]{32}`}},
		{name: "facebook-app-secret", about: "Facebook app secret", keywords: []string{"facebook app secret", "facebook client secret", "fb app secret", "facebook secret"}, values: []string{hex32}},
		{name: "twitter-secret", about: "X (Twitter) API secrets", keywords: []string{"twitter"}, tail: 24, values: []string{`[A-Za-z0-9]{50}`, `[0-9]{15,25}-[A-Za-z0-9]{20,40}`}},
		{name: "asana-secret", about: "Asana client secret", keywords: []string{"asana"}, tail: 24, values: []string{`[a-z0-9]{32}`}},
		{name: "mattermost-token", about: "Mattermost access token", keywords: []string{"mattermost"}, tail: 24, values: []string{`[a-z0-9]{26}`}},
		{name: "travis-token", about: "Travis CI token", keywords: []string{"travis"}, tail: 24, values: []string{`[A-Za-z0-9_-]{22}`}},
		{name: "confluent-secret", about: "Confluent Cloud secret", keywords: []string{"confluent"}, tail: 24, values: []string{`[A-Za-z0-9+/]{64}`}},
		{name: "mistral-key", about: "Mistral and Cohere API keys", keywords: []string{"mistral", "cohere"}, tail: 24, values: []string{`[A-Za-z0-9]{32}`, `[A-Za-z0-9]{40}`}},
		{name: "cloudinary-secret", about: "Cloudinary API secret", keywords: []string{"cloudinary"}, tail: 24, values: []string{`[A-Za-z0-9_-]{27}`}},
		{name: "rapidapi-key", about: "RapidAPI key", keywords: []string{"rapidapi"}, tail: 24, values: []string{`[A-Za-z0-9]{50}`}},
		{name: "azure-openai-key", about: "Azure AI and search keys", keywords: []string{"azure openai", "azure search", "azure api key", "cognitive"}, tail: 24, values: []string{hex32, `[A-Za-z0-9]{52}`, `[A-Za-z0-9]{84}`}},
	}
}

package mask

// The built-in rules that go by shape. Lengths and alphabets are the
// providers'; where one is not fixed, the bounds are those seen in practice.

// forgeSpecs are the tokens of forges and CI systems.
func forgeSpecs() []spec {
	return []spec{
		{name: "gitea-oauth-secret", about: "Gitea and Forgejo OAuth2 client secret: base32 of 32 bytes", patterns: []string{`gto_[a-z2-7]{52}`}},
		{name: "gitea-oauth-code", about: "Gitea and Forgejo OAuth2 authorization code", patterns: []string{`gta_[a-z2-7]{52}`}},
		{name: "github-token", about: "GitHub personal (ghp), OAuth (gho), user (ghu) and refresh (ghr) tokens; the last six characters are a CRC-32, but a token with a wrong one is masked too", patterns: []string{`gh[pour]_[A-Za-z0-9]{36,255}`}},
		{name: "github-app-token", about: "GitHub installation and Actions tokens, old and JWT form", patterns: []string{`ghs_[A-Za-z0-9._-]{36,1000}`}},
		{name: "github-fine-grained", about: "GitHub fine-grained personal token", patterns: []string{`github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}`}},
		{name: "gitlab-pat", about: "GitLab personal, project and group token, routable or not", patterns: []string{`glpat-[A-Za-z0-9_-]{20,300}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?`}},
		{name: "gitlab-deploy-token", about: "GitLab deploy token", patterns: []string{`gldt-[A-Za-z0-9_-]{20,300}`}},
		{name: "gitlab-runner-token", about: "GitLab runner token, routable or not", patterns: []string{`glrt-[A-Za-z0-9_-]{20,300}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?`, `glrtr-[A-Za-z0-9_-]{20,300}`}},
		{name: "gitlab-job-token", about: "GitLab CI job token", patterns: []string{`glcbt-[A-Za-z0-9_-]{20,300}`}},
		{name: "gitlab-trigger-token", about: "GitLab pipeline trigger token", patterns: []string{`glptt-[0-9a-f]{40}`}},
		{name: "gitlab-feed-token", about: "GitLab feed token", patterns: []string{`glft-[A-Za-z0-9_-]{20,100}`}},
		{name: "gitlab-scim-token", about: "GitLab SCIM token", patterns: []string{`glsoat-[A-Za-z0-9_-]{20,100}`}},
		{name: "gitlab-agent-token", about: "GitLab agent for Kubernetes token", patterns: []string{`glagent-[A-Za-z0-9_-]{50,300}`}},
		{name: "gitlab-mail-token", about: "GitLab incoming mail token", patterns: []string{`glimt-[A-Za-z0-9_-]{25}`}},
		{name: "gitlab-oauth-secret", about: "GitLab OAuth application secret", patterns: []string{`gloas-[0-9a-f]{64}`}},
		{name: "gitlab-flag-token", about: "GitLab feature flag client token", patterns: []string{`glffct-[A-Za-z0-9_-]{20,100}`}},
		{name: "gitlab-runner-registration", about: "GitLab runner registration token", patterns: []string{`GR1348941[A-Za-z0-9_-]{20,100}`}},
		{name: "bitbucket-app-password", about: "Bitbucket app password", patterns: []string{`ATBB[A-Za-z0-9]{32}`}},
		{name: "atlassian-token", about: "Atlassian API token", patterns: []string{`AT[AC]TT3[A-Za-z0-9_=-]{150,260}`}},
		{name: "circleci-token", about: "CircleCI personal and project tokens", patterns: []string{`CCI(?:PAT|PRJ)_[A-Za-z0-9]{22}_[0-9a-f]{40}`}},
		{name: "buildkite-token", about: "Buildkite user token", patterns: []string{`bkua_[0-9a-f]{40}`}},
		{name: "sourcegraph-token", about: "Sourcegraph access token", patterns: []string{`sgp_(?:(?:[0-9a-f]{16}|local)_)?[0-9a-f]{40}`}},
		{name: "sonar-token", about: "SonarQube user, project and global tokens", patterns: []string{`sq[apu]_[0-9a-f]{40}`}},
		{name: "harness-token", about: "Harness personal and service tokens", patterns: []string{`[ps]at\.[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}`}},
		{name: "octopus-api-key", about: "Octopus Deploy API key", patterns: []string{`API-[A-Z0-9]{26}`}},
		{name: "infracost-key", about: "Infracost API key", patterns: []string{`ico-[A-Za-z0-9]{32}`}},
		{name: "prefect-key", about: "Prefect API key", patterns: []string{`pnu_[a-z0-9]{36}`}},
		{name: "jfrog-token", about: "JFrog API key and reference token", patterns: []string{`AKCp[A-Za-z0-9]{69}`, `cmVmd[A-Za-z0-9]{59}`}},
	}
}

// cloudSpecs are the keys of hosting and infrastructure.
func cloudSpecs() []spec {
	return []spec{
		{name: "aws-access-key-id", about: "AWS access key id, long-lived or temporary", patterns: []string{`(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}`}},
		{name: "aws-bedrock-key", about: "Amazon Bedrock API key", patterns: []string{`ABSK[A-Za-z0-9+/=]{109,271}`}},
		{name: "google-api-key", about: "Google API key", patterns: []string{`AIza[0-9A-Za-z_-]{35}`}},
		{name: "google-oauth-secret", about: "Google OAuth client secret", patterns: []string{`GOCSPX-[0-9A-Za-z_-]{28}`}},
		{name: "google-oauth-token", about: "Google OAuth access token", patterns: []string{`ya29\.[0-9A-Za-z_-]{30,1000}`}},
		{name: "google-refresh-token", about: "Google OAuth refresh token", patterns: []string{`1//0[0-9A-Za-z_-]{40,200}`}},
		{name: "azure-storage-key", about: "Azure storage account key in a connection string", patterns: []string{`AccountKey=[A-Za-z0-9+/]{86}==`}},
		{name: "azure-shared-key", about: "Azure Service Bus and Event Hubs shared access key", patterns: []string{`SharedAccessKey=[A-Za-z0-9+/]{43}=`}},
		{name: "azure-sas", about: "Azure shared access signature", patterns: []string{`sig=[A-Za-z0-9%]{44,80}`}, must: "%3", guard: "must hold the percent-encoded = of its base64"},
		{name: "azure-client-secret", about: "Microsoft Entra client secret", patterns: []string{`[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}`}},
		{name: "azure-devops-pat", about: "Azure DevOps personal token", patterns: []string{`[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}`}},
		{name: "azure-container-registry", about: "Azure container registry password", patterns: []string{`[A-Za-z0-9+/]{42}\+ACR[A-D][A-Za-z0-9]{5}`}},
		{name: "alibaba-access-key", about: "Alibaba Cloud access key id", patterns: []string{`LTAI[A-Za-z0-9]{17,21}`}},
		{name: "digitalocean-token", about: "DigitalOcean personal, OAuth and refresh tokens", patterns: []string{`do[opr]_v1_[0-9a-f]{64}`}},
		{name: "vault-token", about: "HashiCorp Vault service, batch and recovery tokens", patterns: []string{`hv[sbr]\.[A-Za-z0-9_-]{24,300}`}},
		{name: "terraform-token", about: "HCP Terraform token", patterns: []string{`[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}`}},
		{name: "pulumi-token", about: "Pulumi access token", patterns: []string{`pul-[0-9a-f]{40}`}},
		{name: "tailscale-key", about: "Tailscale auth, API, client, SCIM and webhook keys", patterns: []string{`tskey-(?:auth|api|client|scim|webhook)-[A-Za-z0-9]{8,32}-[A-Za-z0-9]{16,64}`}},
		{name: "cloudflare-token", about: "Cloudflare user, account and global tokens with a prefix", patterns: []string{`cf(?:k|ut|at)_[A-Za-z0-9]{40,60}`}},
		{name: "cloudflare-origin-ca", about: "Cloudflare Origin CA key", patterns: []string{`v1\.0-[0-9a-f]{24}-[0-9a-f]{146}`}},
		{name: "heroku-key", about: "Heroku API key", patterns: []string{`HRKU-AA[A-Za-z0-9_-]{58}`}},
		{name: "fly-token", about: "Fly.io access tokens", patterns: []string{`fo1_[A-Za-z0-9_-]{43}`, `fm[12][ar]?_[A-Za-z0-9+/=]{100,1000}`}},
		{name: "planetscale-token", about: "PlanetScale passwords and tokens", patterns: []string{`pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{32,64}`}},
		{name: "supabase-key", about: "Supabase personal token and secret key", patterns: []string{`sbp_[0-9a-f]{40}`, `sb_secret_[A-Za-z0-9_-]{31}`}},
		{name: "netlify-token", about: "Netlify personal token", patterns: []string{`nfp_[A-Za-z0-9]{36}`}},
		{name: "render-key", about: "Render API key", patterns: []string{`rnd_[A-Za-z0-9]{28,32}`}},
		{name: "doppler-token", about: "Doppler tokens", patterns: []string{`dp\.(?:pt|ct|sa|scim|audit)\.[A-Za-z0-9]{40,44}`}},
		{name: "openshift-token", about: "OpenShift user token", patterns: []string{`sha256~[A-Za-z0-9_-]{43}`}},
		{name: "scalingo-token", about: "Scalingo API token", patterns: []string{`tk-us-[A-Za-z0-9_-]{48}`}},
		{name: "yandex-api-key", about: "Yandex Cloud API key", patterns: []string{`AQVN[A-Za-z0-9_-]{35,38}`}},
		{name: "databricks-token", about: "Databricks personal token", patterns: []string{`dapi[0-9a-f]{32}`}},
		{name: "onepassword-service", about: "1Password service account token", patterns: []string{`ops_eyJ[A-Za-z0-9+/=_-]{200,1000}`}},
		{name: "onepassword-secret-key", about: "1Password secret key", patterns: []string{`A3-[A-Z0-9]{6}-[A-Z0-9]{11}-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}`}},
		{name: "age-key", about: "age X25519 identity", patterns: []string{`AGE-SECRET-KEY-1[0-9A-Z]{58}`}},
		{name: "jwt", about: "JSON Web Tokens, signed and encrypted", patterns: []string{`eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{20,}`, `eyJ[A-Za-z0-9_-]{14,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{22,}`}, guard: "header and payload must both be base64url of an object; the encrypted form needs five parts"},
	}
}

// modelSpecs are the keys of AI services.
func modelSpecs() []spec {
	return []spec{
		{name: "openai-key", about: "OpenAI project, service account and admin keys", patterns: []string{`sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,200}`}, must: "T3BlbkFJ", guard: "must hold T3BlbkFJ"},
		{name: "openai-legacy-key", about: "OpenAI user key", patterns: []string{`sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}`}},
		{name: "anthropic-key", about: "Anthropic API, admin and OAuth keys", patterns: []string{`sk-ant-(?:api|admin|oat|ort|sid)[0-9]{2}-[A-Za-z0-9_-]{80,120}`}},
		{name: "huggingface-token", about: "Hugging Face user and organisation tokens", patterns: []string{`hf_[A-Za-z]{34}`, `api_org_[A-Za-z]{34}`}},
		{name: "groq-key", about: "Groq API key", patterns: []string{`gsk_[A-Za-z0-9]{52}`}},
		{name: "xai-key", about: "xAI API key", patterns: []string{`xai-[A-Za-z0-9]{80}`}},
		{name: "openrouter-key", about: "OpenRouter API key", patterns: []string{`sk-or-v1-[0-9a-f]{64}`}},
		{name: "perplexity-key", about: "Perplexity API key", patterns: []string{`pplx-[A-Za-z0-9]{48}`}},
		{name: "replicate-token", about: "Replicate API token", patterns: []string{`r8_[A-Za-z0-9]{37}`}},
		{name: "langsmith-key", about: "LangSmith keys", patterns: []string{`lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}`}},
		{name: "langfuse-key", about: "Langfuse secret key", patterns: []string{`sk-lf-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`}},
		{name: "nvidia-key", about: "NVIDIA API key", patterns: []string{`nvapi-[A-Za-z0-9_-]{64}`}},
		{name: "elevenlabs-key", about: "ElevenLabs API key", patterns: []string{`sk_[0-9a-f]{48}`}},
		{name: "cerebras-key", about: "Cerebras API key", patterns: []string{`csk-[a-z0-9]{48}`}},
		{name: "pinecone-key", about: "Pinecone API key", patterns: []string{`pcsk_[A-Za-z0-9]{5,6}_[A-Za-z0-9]{60,64}`}},
		{name: "tavily-key", about: "Tavily API key", patterns: []string{`tvly-(?:dev-|prod-)?[A-Za-z0-9]{32}`}},
	}
}

// packageSpecs are the tokens of package registries.
func packageSpecs() []spec {
	return []spec{
		{name: "npm-token", about: "npm access token; its checksum is GitHub's", patterns: []string{`npm_[A-Za-z0-9]{36}`}},
		{name: "pypi-token", about: "PyPI and TestPyPI API tokens", patterns: []string{`pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,1000}`, `pypi-AgENdGVzdC5weXBpLm9yZw[A-Za-z0-9_-]{50,1000}`}},
		{name: "crates-token", about: "crates.io API token", patterns: []string{`cio[A-Za-z0-9]{32}`}},
		{name: "rubygems-key", about: "RubyGems API key", patterns: []string{`rubygems_[0-9a-f]{48}`}},
		{name: "nuget-key", about: "NuGet API key", patterns: []string{`oy2[a-z0-9]{43}`}},
		{name: "clojars-token", about: "Clojars deploy token", patterns: []string{`CLOJARS_[a-z0-9]{60}`}},
		{name: "docker-token", about: "Docker Hub personal and organisation tokens", patterns: []string{`dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,36}`}},
	}
}

// messageSpecs are the tokens and webhooks of messengers and mail services.
func messageSpecs() []spec {
	return []spec{
		{name: "slack-token", about: "Slack bot, user, app and refresh tokens", patterns: []string{`xox[abeoprs]-[0-9]{9,14}-[0-9A-Za-z-]{20,250}`, `xox[abeoprs]-[0-9]-[0-9A-Za-z]{100,250}`, `xoxe\.xox[bp]-[0-9]-[0-9A-Za-z]{100,250}`}},
		{name: "slack-session", about: "Slack browser token and cookie", patterns: []string{`xox[cd]-[0-9A-Za-z%-]{40,400}`}},
		{name: "slack-app-token", about: "Slack app-level token", patterns: []string{`xapp-[0-9]-[A-Z0-9]{9,12}-[0-9]{10,14}-[0-9a-f]{64}`}},
		{name: "slack-webhook", about: "Slack webhook address", patterns: []string{`hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{40,80}`}},
		{name: "discord-bot-token", about: "Discord bot token: base64 of a numeric id, a time and a signature", patterns: []string{`[MNO][DTjz][AEIMQUYcgk][w-z0-5][MNO][DTjz][AEIMQUYcgk][w-z0-5][A-Za-z0-9_-]{16,18}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}`}},
		{name: "discord-webhook", about: "Discord webhook address", patterns: []string{`discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[A-Za-z0-9_-]{60,80}`}},
		{name: "telegram-bot-token", about: "Telegram bot token", patterns: []string{`[0-9]{8,10}:AA[A-Za-z0-9_-]{33}`}},
		{name: "teams-webhook", about: "Microsoft Teams webhook address", patterns: []string{`webhook\.office\.com/webhookb2/[0-9a-f-]{36}@[0-9a-f-]{36}/IncomingWebhook/[0-9a-f]{32}/[0-9a-f-]{36}`}},
		{name: "sendgrid-key", about: "SendGrid API key", patterns: []string{`SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`}},
		{name: "sendinblue-key", about: "Brevo (Sendinblue) API key", patterns: []string{`xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}`}},
		{name: "mailgun-key", about: "Mailgun private key", patterns: []string{`key-[0-9a-f]{32}`}},
		{name: "mailchimp-key", about: "Mailchimp API key", patterns: []string{`[0-9a-f]{32}-us[0-9]{1,2}`}},
		{name: "resend-key", about: "Resend API key", patterns: []string{`re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}`}},
		{name: "twilio-api-key", about: "Twilio API key id", patterns: []string{`SK[0-9a-f]{32}`}},
	}
}

// serviceSpecs are the keys of payment, monitoring and other services.
func serviceSpecs() []spec {
	return []spec{
		{name: "stripe-key", about: "Stripe secret and restricted keys; publishable keys are public", patterns: []string{`[rs]k_(?:live|test)_[A-Za-z0-9]{16,128}`}},
		{name: "stripe-webhook-secret", about: "Stripe webhook signing secret", patterns: []string{`whsec_[A-Za-z0-9+/=]{32,64}`}},
		{name: "square-token", about: "Square access token and OAuth secret", patterns: []string{`sq0(?:atp|csp)-[A-Za-z0-9_-]{22,43}`, `EAAA[A-Za-z0-9_-]{60}`}},
		{name: "facebook-token", about: "Facebook access token", patterns: []string{`EAA[MC][A-Za-z0-9]{100,300}`}},
		{name: "shopify-token", about: "Shopify access tokens and shared secret", patterns: []string{`shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}`}},
		{name: "linear-token", about: "Linear API key and OAuth token", patterns: []string{`lin_(?:api|oauth)_[A-Za-z0-9]{40,64}`}},
		{name: "notion-token", about: "Notion integration token", patterns: []string{`ntn_[A-Za-z0-9]{46}`, `secret_[A-Za-z0-9]{43}`}},
		{name: "airtable-token", about: "Airtable personal token", patterns: []string{`pat[A-Za-z0-9]{14}\.[0-9a-f]{64}`}},
		{name: "figma-token", about: "Figma personal token", patterns: []string{`figd_[A-Za-z0-9_-]{40}`}},
		{name: "postman-key", about: "Postman API key", patterns: []string{`PMAK-[0-9a-f]{24}-[0-9a-f]{34}`}},
		{name: "readme-key", about: "ReadMe API key", patterns: []string{`rdme_[a-z0-9]{70}`}},
		{name: "typeform-token", about: "Typeform personal token", patterns: []string{`tfp_[A-Za-z0-9_=.-]{40,59}`}},
		{name: "contentful-token", about: "Contentful management token", patterns: []string{`CFPAT-[A-Za-z0-9_-]{43}`}},
		{name: "grafana-token", about: "Grafana service account and cloud tokens, and old API keys", patterns: []string{`glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}`, `glc_[A-Za-z0-9+/=]{32,400}`, `eyJrIjoi[A-Za-z0-9=]{60,400}`}},
		{name: "sentry-token", about: "Sentry user and organisation tokens", patterns: []string{`sntryu_[0-9a-f]{64}`, `sntrys_eyJ[A-Za-z0-9+/=_-]{80,500}`}},
		{name: "newrelic-key", about: "New Relic user and insert keys", patterns: []string{`NRAK-[A-Z0-9]{27}`, `NRII-[A-Za-z0-9_-]{32}`}},
		{name: "dynatrace-token", about: "Dynatrace API token", patterns: []string{`dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}`}},
		{name: "posthog-key", about: "PostHog personal API key", patterns: []string{`phx_[A-Za-z0-9]{40,48}`}},
		{name: "shippo-token", about: "Shippo API token", patterns: []string{`shippo_(?:live|test)_[0-9a-f]{40}`}},
		{name: "easypost-key", about: "EasyPost API keys", patterns: []string{`EZ[AT]K[A-Za-z0-9]{54}`}},
		{name: "duffel-token", about: "Duffel API token", patterns: []string{`duffel_(?:test|live)_[A-Za-z0-9_=-]{43}`}},
		{name: "flutterwave-key", about: "Flutterwave secret key", patterns: []string{`FLWSECK(?:_TEST)?-[0-9a-z]{32}-X`}},
		{name: "frameio-token", about: "Frame.io token", patterns: []string{`fio-u-[A-Za-z0-9_=-]{64}`}},
		{name: "adobe-secret", about: "Adobe client secret", patterns: []string{`p8e-[A-Za-z0-9_-]{32}`}},
		{name: "dropbox-token", about: "Dropbox short-lived token", patterns: []string{`sl\.[A-Za-z0-9_=-]{130,1000}`}},
		{name: "maxmind-key", about: "MaxMind licence key", patterns: []string{`[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk`}},
	}
}

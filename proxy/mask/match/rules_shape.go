package match

// The built-in rules that go by shape. Lengths and alphabets are the
// providers'; where one is not fixed, the bounds are those seen in practice.

// forgeRules are the tokens of forges and CI systems.
func forgeRules() []Rule {
	return []Rule{
		{Name: "gitea-oauth-secret", About: "Gitea and Forgejo OAuth2 client secret: base32 of 32 bytes", Patterns: []string{`gto_[a-z2-7]{52}`}, Loose: `gto_[A-Za-z0-9]{16,}`},
		{Name: "gitea-oauth-code", About: "Gitea and Forgejo OAuth2 authorization code", Patterns: []string{`gta_[a-z2-7]{52}`}, Loose: `gt[ar]_[A-Za-z0-9]{16,}`},
		{Name: "github-token", About: "GitHub personal (ghp), OAuth (gho), user (ghu) and refresh (ghr) tokens; the last six characters are a CRC-32, but a token with a wrong one is masked too", Patterns: []string{`gh[pour]_[A-Za-z0-9]{36,255}`}, Loose: `gh[pour]_[A-Za-z0-9]{16,}`},
		{Name: "github-app-token", About: "GitHub installation and Actions tokens, old and JWT form", Patterns: []string{`ghs_[A-Za-z0-9._-]{36,1000}`}, Loose: `ghs_[A-Za-z0-9]{16,}`},
		{Name: "github-fine-grained", About: "GitHub fine-grained personal token", Patterns: []string{`github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}`}, Loose: `github_pat_[A-Za-z0-9_]{16,}`},
		{Name: "gitlab-pat", About: "GitLab personal, project and group token, routable or not", Patterns: []string{`glpat-[A-Za-z0-9_-]{20,300}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?`}, Loose: `glpat-[A-Za-z0-9_-]{16,}`},
		{Name: "gitlab-deploy-token", About: "GitLab deploy token", Patterns: []string{`gldt-[A-Za-z0-9_-]{20,300}`}},
		{Name: "gitlab-runner-token", About: "GitLab runner token, routable or not", Patterns: []string{`glrt-[A-Za-z0-9_-]{20,300}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?`, `glrtr-[A-Za-z0-9_-]{20,300}`}},
		{Name: "gitlab-job-token", About: "GitLab CI job token", Patterns: []string{`glcbt-[A-Za-z0-9_-]{20,300}`}},
		{Name: "gitlab-trigger-token", About: "GitLab pipeline trigger token", Patterns: []string{`glptt-[0-9a-f]{40}`}},
		{Name: "gitlab-feed-token", About: "GitLab feed token", Patterns: []string{`glft-[A-Za-z0-9_-]{20,100}`}},
		{Name: "gitlab-scim-token", About: "GitLab SCIM token", Patterns: []string{`glsoat-[A-Za-z0-9_-]{20,100}`}},
		{Name: "gitlab-agent-token", About: "GitLab agent for Kubernetes token", Patterns: []string{`glagent-[A-Za-z0-9_-]{50,300}`}},
		{Name: "gitlab-mail-token", About: "GitLab incoming mail token", Patterns: []string{`glimt-[A-Za-z0-9_-]{25}`}},
		{Name: "gitlab-oauth-secret", About: "GitLab OAuth application secret", Patterns: []string{`gloas-[0-9a-f]{64}`}},
		{Name: "gitlab-flag-token", About: "GitLab feature flag client token", Patterns: []string{`glffct-[A-Za-z0-9_-]{20,100}`}},
		{Name: "gitlab-runner-registration", About: "GitLab runner registration token", Patterns: []string{`GR1348941[A-Za-z0-9_-]{20,100}`}},
		{Name: "bitbucket-app-password", About: "Bitbucket app password", Patterns: []string{`ATBB[A-Za-z0-9]{32}`}},
		{Name: "atlassian-token", About: "Atlassian API token", Patterns: []string{`AT[AC]TT3[A-Za-z0-9_=-]{150,260}`}},
		{Name: "circleci-token", About: "CircleCI personal and project tokens", Patterns: []string{`CCI(?:PAT|PRJ)_[A-Za-z0-9]{22}_[0-9a-f]{40}`}},
		{Name: "buildkite-token", About: "Buildkite user token", Patterns: []string{`bkua_[0-9a-f]{40}`}},
		{Name: "sourcegraph-token", About: "Sourcegraph access token", Patterns: []string{`sgp_(?:(?:[0-9a-f]{16}|local)_)?[0-9a-f]{40}`}},
		{Name: "sonar-token", About: "SonarQube user, project and global tokens", Patterns: []string{`sq[apu]_[0-9a-f]{40}`}},
		{Name: "harness-token", About: "Harness personal and service tokens", Patterns: []string{`[ps]at\.[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}`}},
		{Name: "octopus-api-key", About: "Octopus Deploy API key", Patterns: []string{`API-[A-Z0-9]{26}`}},
		{Name: "infracost-key", About: "Infracost API key", Patterns: []string{`ico-[A-Za-z0-9]{32}`}},
		{Name: "prefect-key", About: "Prefect API key", Patterns: []string{`pnu_[a-z0-9]{36}`}},
		{Name: "jfrog-token", About: "JFrog API key and reference token", Patterns: []string{`AKCp[A-Za-z0-9]{69}`, `cmVmd[A-Za-z0-9]{59}`}},
	}
}

// cloudRules are the keys of hosting and infrastructure.
func cloudRules() []Rule {
	return []Rule{
		{Name: "aws-access-key-id", About: "AWS access key id, long-lived or temporary", Patterns: []string{`(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}`}, Loose: `AKIA[A-Z0-9]{16}`},
		{Name: "aws-bedrock-key", About: "Amazon Bedrock API key", Patterns: []string{`ABSK[A-Za-z0-9+/=]{109,271}`}},
		{Name: "google-api-key", About: "Google API key", Patterns: []string{`AIza[0-9A-Za-z_-]{35}`}},
		{Name: "google-oauth-secret", About: "Google OAuth client secret", Patterns: []string{`GOCSPX-[0-9A-Za-z_-]{28}`}},
		{Name: "google-oauth-token", About: "Google OAuth access token", Patterns: []string{`ya29\.[0-9A-Za-z_-]{30,1000}`}},
		{Name: "google-refresh-token", About: "Google OAuth refresh token", Patterns: []string{`1//0[0-9A-Za-z_-]{40,200}`}},
		{Name: "azure-storage-key", About: "Azure storage account key in a connection string", Patterns: []string{`AccountKey=[A-Za-z0-9+/]{86}==`}},
		{Name: "azure-shared-key", About: "Azure Service Bus and Event Hubs shared access key", Patterns: []string{`SharedAccessKey=[A-Za-z0-9+/]{43}=`}},
		{Name: "azure-sas", About: "Azure shared access signature", Patterns: []string{`sig=[A-Za-z0-9%]{44,80}`}, Must: "%3", Guard: "must hold the percent-encoded = of its base64"},
		{Name: "azure-client-secret", About: "Microsoft Entra client secret", Patterns: []string{`[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}`}},
		{Name: "azure-devops-pat", About: "Azure DevOps personal token", Patterns: []string{`[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}`}},
		{Name: "azure-container-registry", About: "Azure container registry password", Patterns: []string{`[A-Za-z0-9+/]{42}\+ACR[A-D][A-Za-z0-9]{5}`}},
		{Name: "alibaba-access-key", About: "Alibaba Cloud access key id", Patterns: []string{`LTAI[A-Za-z0-9]{17,21}`}},
		{Name: "digitalocean-token", About: "DigitalOcean personal, OAuth and refresh tokens", Patterns: []string{`do[opr]_v1_[0-9a-f]{64}`}},
		{Name: "vault-token", About: "HashiCorp Vault service, batch and recovery tokens", Patterns: []string{`hv[sbr]\.[A-Za-z0-9_-]{24,300}`}},
		{Name: "terraform-token", About: "HCP Terraform token", Patterns: []string{`[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}`}},
		{Name: "pulumi-token", About: "Pulumi access token", Patterns: []string{`pul-[0-9a-f]{40}`}},
		{Name: "tailscale-key", About: "Tailscale auth, API, client, SCIM and webhook keys", Patterns: []string{`tskey-(?:auth|api|client|scim|webhook)-[A-Za-z0-9]{8,32}-[A-Za-z0-9]{16,64}`}},
		{Name: "cloudflare-token", About: "Cloudflare user, account and global tokens with a prefix", Patterns: []string{`cf(?:k|ut|at)_[A-Za-z0-9]{40,60}`}},
		{Name: "cloudflare-origin-ca", About: "Cloudflare Origin CA key", Patterns: []string{`v1\.0-[0-9a-f]{24}-[0-9a-f]{146}`}},
		{Name: "heroku-key", About: "Heroku API key", Patterns: []string{`HRKU-AA[A-Za-z0-9_-]{58}`}},
		{Name: "fly-token", About: "Fly.io access tokens", Patterns: []string{`fo1_[A-Za-z0-9_-]{43}`, `fm[12][ar]?_[A-Za-z0-9+/=]{100,1000}`}},
		{Name: "planetscale-token", About: "PlanetScale passwords and tokens", Patterns: []string{`pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{32,64}`}},
		{Name: "supabase-key", About: "Supabase personal token and secret key", Patterns: []string{`sbp_[0-9a-f]{40}`, `sb_secret_[A-Za-z0-9_-]{31}`}},
		{Name: "netlify-token", About: "Netlify personal token", Patterns: []string{`nfp_[A-Za-z0-9]{36}`}},
		{Name: "render-key", About: "Render API key", Patterns: []string{`rnd_[A-Za-z0-9]{28,32}`}},
		{Name: "doppler-token", About: "Doppler tokens", Patterns: []string{`dp\.(?:pt|ct|sa|scim|audit)\.[A-Za-z0-9]{40,44}`}},
		{Name: "openshift-token", About: "OpenShift user token", Patterns: []string{`sha256~[A-Za-z0-9_-]{43}`}},
		{Name: "scalingo-token", About: "Scalingo API token", Patterns: []string{`tk-us-[A-Za-z0-9_-]{48}`}},
		{Name: "yandex-api-key", About: "Yandex Cloud API key", Patterns: []string{`AQVN[A-Za-z0-9_-]{35,38}`}},
		{Name: "databricks-token", About: "Databricks personal token", Patterns: []string{`dapi[0-9a-f]{32}`}},
		{Name: "onepassword-service", About: "1Password service account token", Patterns: []string{`ops_eyJ[A-Za-z0-9+/=_-]{200,1000}`}},
		{Name: "onepassword-secret-key", About: "1Password secret key", Patterns: []string{`A3-[A-Z0-9]{6}-[A-Z0-9]{11}-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}`}},
		{Name: "age-key", About: "age X25519 identity", Patterns: []string{`AGE-SECRET-KEY-1[0-9A-Z]{58}`}},
		{Name: "jwt", About: "JSON Web Tokens, signed and encrypted", Patterns: []string{`eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{20,}`, `eyJ[A-Za-z0-9_-]{14,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{22,}`}, Guard: "header and payload must both be base64url of an object; the encrypted form needs five parts", Loose: `eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`},
	}
}

// modelRules are the keys of AI services.
func modelRules() []Rule {
	return []Rule{
		{Name: "openai-key", About: "OpenAI project, service account and admin keys", Patterns: []string{`sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,200}`}, Must: "T3BlbkFJ", Guard: "must hold T3BlbkFJ"},
		{Name: "openai-legacy-key", About: "OpenAI user key", Patterns: []string{`sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}`}},
		{Name: "anthropic-key", About: "Anthropic API, admin and OAuth keys", Patterns: []string{`sk-ant-(?:api|admin|oat|ort|sid)[0-9]{2}-[A-Za-z0-9_-]{80,120}`}},
		{Name: "huggingface-token", About: "Hugging Face user and organisation tokens", Patterns: []string{`hf_[A-Za-z]{34}`, `api_org_[A-Za-z]{34}`}},
		{Name: "groq-key", About: "Groq API key", Patterns: []string{`gsk_[A-Za-z0-9]{52}`}},
		{Name: "xai-key", About: "xAI API key", Patterns: []string{`xai-[A-Za-z0-9]{80}`}},
		{Name: "openrouter-key", About: "OpenRouter API key", Patterns: []string{`sk-or-v1-[0-9a-f]{64}`}},
		{Name: "perplexity-key", About: "Perplexity API key", Patterns: []string{`pplx-[A-Za-z0-9]{48}`}},
		{Name: "replicate-token", About: "Replicate API token", Patterns: []string{`r8_[A-Za-z0-9]{37}`}},
		{Name: "langsmith-key", About: "LangSmith keys", Patterns: []string{`lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}`}},
		{Name: "langfuse-key", About: "Langfuse secret key", Patterns: []string{`sk-lf-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`}},
		{Name: "nvidia-key", About: "NVIDIA API key", Patterns: []string{`nvapi-[A-Za-z0-9_-]{64}`}},
		{Name: "elevenlabs-key", About: "ElevenLabs API key", Patterns: []string{`sk_[0-9a-f]{48}`}},
		{Name: "cerebras-key", About: "Cerebras API key", Patterns: []string{`csk-[a-z0-9]{48}`}},
		{Name: "pinecone-key", About: "Pinecone API key", Patterns: []string{`pcsk_[A-Za-z0-9]{5,6}_[A-Za-z0-9]{60,64}`}},
		{Name: "tavily-key", About: "Tavily API key", Patterns: []string{`tvly-(?:dev-|prod-)?[A-Za-z0-9]{32}`}},
	}
}

// packageRules are the tokens of package registries.
func packageRules() []Rule {
	return []Rule{
		{Name: "npm-token", About: "npm access token; its checksum is GitHub's", Patterns: []string{`npm_[A-Za-z0-9]{36}`}},
		{Name: "pypi-token", About: "PyPI and TestPyPI API tokens", Patterns: []string{`pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,1000}`, `pypi-AgENdGVzdC5weXBpLm9yZw[A-Za-z0-9_-]{50,1000}`}},
		{Name: "crates-token", About: "crates.io API token", Patterns: []string{`cio[A-Za-z0-9]{32}`}},
		{Name: "rubygems-key", About: "RubyGems API key", Patterns: []string{`rubygems_[0-9a-f]{48}`}},
		{Name: "nuget-key", About: "NuGet API key", Patterns: []string{`oy2[a-z0-9]{43}`}},
		{Name: "clojars-token", About: "Clojars deploy token", Patterns: []string{`CLOJARS_[a-z0-9]{60}`}},
		{Name: "docker-token", About: "Docker Hub personal and organisation tokens", Patterns: []string{`dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,36}`}},
	}
}

// messageRules are the tokens and webhooks of messengers and mail services.
func messageRules() []Rule {
	return []Rule{
		{Name: "slack-token", About: "Slack bot, user, app and refresh tokens", Patterns: []string{`xox[abeoprs]-[0-9]{9,14}-[0-9A-Za-z-]{20,250}`, `xox[abeoprs]-[0-9]-[0-9A-Za-z]{100,250}`, `xoxe\.xox[bp]-[0-9]-[0-9A-Za-z]{100,250}`}, Loose: `xox[a-z]-[A-Za-z0-9-]{10,}`},
		{Name: "slack-session", About: "Slack browser token and cookie", Patterns: []string{`xox[cd]-[0-9A-Za-z%-]{40,400}`}},
		{Name: "slack-app-token", About: "Slack app-level token", Patterns: []string{`xapp-[0-9]-[A-Z0-9]{9,12}-[0-9]{10,14}-[0-9a-f]{64}`}},
		{Name: "slack-webhook", About: "Slack webhook address", Patterns: []string{`hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{40,80}`}},
		{Name: "discord-bot-token", About: "Discord bot token: base64 of a numeric id, a time and a signature", Patterns: []string{`[MNO][DTjz][AEIMQUYcgk][w-z0-5][MNO][DTjz][AEIMQUYcgk][w-z0-5][A-Za-z0-9_-]{16,18}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}`}},
		{Name: "discord-webhook", About: "Discord webhook address", Patterns: []string{`discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[A-Za-z0-9_-]{60,80}`}},
		{Name: "telegram-bot-token", About: "Telegram bot token", Patterns: []string{`[0-9]{8,10}:AA[A-Za-z0-9_-]{33}`}},
		{Name: "teams-webhook", About: "Microsoft Teams webhook address", Patterns: []string{`webhook\.office\.com/webhookb2/[0-9a-f-]{36}@[0-9a-f-]{36}/IncomingWebhook/[0-9a-f]{32}/[0-9a-f-]{36}`}},
		{Name: "sendgrid-key", About: "SendGrid API key", Patterns: []string{`SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`}},
		{Name: "sendinblue-key", About: "Brevo (Sendinblue) API key", Patterns: []string{`xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}`}},
		{Name: "mailgun-key", About: "Mailgun private key", Patterns: []string{`key-[0-9a-f]{32}`}},
		{Name: "mailchimp-key", About: "Mailchimp API key", Patterns: []string{`[0-9a-f]{32}-us[0-9]{1,2}`}},
		{Name: "resend-key", About: "Resend API key", Patterns: []string{`re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}`}},
		{Name: "twilio-api-key", About: "Twilio API key id", Patterns: []string{`SK[0-9a-f]{32}`}},
	}
}

// serviceRules are the keys of payment, monitoring and other services.
func serviceRules() []Rule {
	return []Rule{
		{Name: "stripe-key", About: "Stripe secret and restricted keys; publishable keys are public", Patterns: []string{`[rs]k_(?:live|test)_[A-Za-z0-9]{16,128}`}},
		{Name: "stripe-webhook-secret", About: "Stripe webhook signing secret", Patterns: []string{`whsec_[A-Za-z0-9+/=]{32,64}`}},
		{Name: "square-token", About: "Square access token and OAuth secret", Patterns: []string{`sq0(?:atp|csp)-[A-Za-z0-9_-]{22,43}`, `EAAA[A-Za-z0-9_-]{60}`}},
		{Name: "facebook-token", About: "Facebook access token", Patterns: []string{`EAA[MC][A-Za-z0-9]{100,300}`}},
		{Name: "shopify-token", About: "Shopify access tokens and shared secret", Patterns: []string{`shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}`}},
		{Name: "linear-token", About: "Linear API key and OAuth token", Patterns: []string{`lin_(?:api|oauth)_[A-Za-z0-9]{40,64}`}},
		{Name: "notion-token", About: "Notion integration token", Patterns: []string{`ntn_[A-Za-z0-9]{46}`, `secret_[A-Za-z0-9]{43}`}},
		{Name: "airtable-token", About: "Airtable personal token", Patterns: []string{`pat[A-Za-z0-9]{14}\.[0-9a-f]{64}`}},
		{Name: "figma-token", About: "Figma personal token", Patterns: []string{`figd_[A-Za-z0-9_-]{40}`}},
		{Name: "postman-key", About: "Postman API key", Patterns: []string{`PMAK-[0-9a-f]{24}-[0-9a-f]{34}`}},
		{Name: "readme-key", About: "ReadMe API key", Patterns: []string{`rdme_[a-z0-9]{70}`}},
		{Name: "typeform-token", About: "Typeform personal token", Patterns: []string{`tfp_[A-Za-z0-9_=.-]{40,59}`}},
		{Name: "contentful-token", About: "Contentful management token", Patterns: []string{`CFPAT-[A-Za-z0-9_-]{43}`}},
		{Name: "grafana-token", About: "Grafana service account and cloud tokens, and old API keys", Patterns: []string{`glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}`, `glc_[A-Za-z0-9+/=]{32,400}`, `eyJrIjoi[A-Za-z0-9=]{60,400}`}},
		{Name: "sentry-token", About: "Sentry user and organisation tokens", Patterns: []string{`sntryu_[0-9a-f]{64}`, `sntrys_eyJ[A-Za-z0-9+/=_-]{80,500}`}},
		{Name: "newrelic-key", About: "New Relic user and insert keys", Patterns: []string{`NRAK-[A-Z0-9]{27}`, `NRII-[A-Za-z0-9_-]{32}`}},
		{Name: "dynatrace-token", About: "Dynatrace API token", Patterns: []string{`dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}`}},
		{Name: "posthog-key", About: "PostHog personal API key", Patterns: []string{`phx_[A-Za-z0-9]{40,48}`}},
		{Name: "shippo-token", About: "Shippo API token", Patterns: []string{`shippo_(?:live|test)_[0-9a-f]{40}`}},
		{Name: "easypost-key", About: "EasyPost API keys", Patterns: []string{`EZ[AT]K[A-Za-z0-9]{54}`}},
		{Name: "duffel-token", About: "Duffel API token", Patterns: []string{`duffel_(?:test|live)_[A-Za-z0-9_=-]{43}`}},
		{Name: "flutterwave-key", About: "Flutterwave secret key", Patterns: []string{`FLWSECK(?:_TEST)?-[0-9a-z]{32}-X`}},
		{Name: "frameio-token", About: "Frame.io token", Patterns: []string{`fio-u-[A-Za-z0-9_=-]{64}`}},
		{Name: "adobe-secret", About: "Adobe client secret", Patterns: []string{`p8e-[A-Za-z0-9_-]{32}`}},
		{Name: "dropbox-token", About: "Dropbox short-lived token", Patterns: []string{`sl\.[A-Za-z0-9_=-]{130,1000}`}},
		{Name: "maxmind-key", About: "MaxMind licence key", Patterns: []string{`[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk`}},
	}
}

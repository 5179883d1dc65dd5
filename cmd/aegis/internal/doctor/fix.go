package doctor

import (
	"maps"
	"slices"
	"strings"
)

// remedy is how to fix one fault in each proxy.
type remedy struct {
	all   string // holds for every proxy; may be ""
	proxy map[string]string
}

// remedies by fault. Each proxy's line goes where the others for this host are.
var remedies = map[string]remedy{
	"host": {"pass the Host header on, and set public_url to the address that clients use", map[string]string{
		"nginx": "proxy_set_header Host $host;", "Caddy": "header_up Host {host}", "Traefik": "passHostHeader: true", "Apache": "ProxyPreserveHost On",
	}},
	"request-id": {"let the proxy leave X-Request-Id of answers alone; the same id is in Aegis's log", map[string]string{
		"nginx": "proxy_pass_header X-Request-Id;",
	}},
	"path": {"pass all methods and paths of the endpoint to Aegis, without a login page of the proxy's own", map[string]string{
		"nginx": "location /mcp { proxy_pass http://127.0.0.1:8080; }", "Caddy": "reverse_proxy 127.0.0.1:8080", "Traefik": "rule: Host(`…`)",
		"Apache": "ProxyPass /mcp http://127.0.0.1:8080/mcp",
	}},
	"origin": {"pass the Origin header on; which pages may call is server.allowed_origins", map[string]string{
		"nginx": `remove: proxy_set_header Origin "…";`, "Caddy": "remove: header_up -Origin", "Traefik": "remove Origin from customRequestHeaders",
		"Apache": "remove: RequestHeader unset Origin",
	}},
	"cors": {"leave CORS to Aegis: remove the proxy's own Access-Control headers and its own answers to OPTIONS", map[string]string{
		"nginx": "remove: add_header Access-Control-…; and if ($request_method = OPTIONS)", "Caddy": "remove: header Access-Control-…",
		"Traefik": "remove the accessControl… options of the headers middleware", "Apache": "remove: Header set Access-Control-…",
	}},
	"well-known": {"pass the host's /.well-known/oauth-… paths to Aegis, before rules for other /.well-known/ paths", map[string]string{
		"nginx": "location /.well-known/oauth- { proxy_pass http://127.0.0.1:8080; }", "Caddy": "reverse_proxy /.well-known/oauth-* 127.0.0.1:8080",
		"Traefik": "rule: PathPrefix(`/.well-known/oauth-`)", "Apache": "ProxyPass /.well-known/oauth-… http://127.0.0.1:8080/.well-known/oauth-…",
	}},
	"rewrite": {"let the proxy leave bodies alone", map[string]string{
		"nginx": "remove: sub_filter", "Caddy": "remove: replace", "Apache": "remove: SetOutputFilter SUBSTITUTE",
	}},
	"challenge": {"pass WWW-Authenticate of answers on, and answer no 401 in Aegis's place", map[string]string{
		"nginx": "proxy_intercept_errors off; and remove: proxy_hide_header WWW-Authenticate, auth_basic", "Caddy": "remove: header_down -WWW-Authenticate, basic_auth",
		"Traefik": "remove WWW-Authenticate from customResponseHeaders, and basicAuth", "Apache": "ProxyErrorOverride Off, and remove: Header unset WWW-Authenticate, AuthType",
	}},
	"authorization": {"pass the Authorization header on unchanged", map[string]string{
		"nginx": "proxy_set_header Authorization $http_authorization;", "Caddy": "remove: header_up -Authorization",
		"Traefik": "remove Authorization from customRequestHeaders; basicAuth: removeHeader false", "Apache": "remove: RequestHeader unset Authorization",
	}},
	"slash": {"let the proxy pass paths on as they came", map[string]string{
		"nginx": "proxy_pass http://127.0.0.1:8080; with nothing after the port (a path there makes nginx decode)", "Caddy": "remove: uri and handle_path",
		"Traefik": "http.encodedCharacters.allowEncodedSlash: true at the entry point", "Apache": "AllowEncodedSlashes NoDecode, and nocanon at the end of ProxyPass",
	}},
	"compression": {"do not compress answers of Aegis again, event streams least of all", map[string]string{
		"nginx": "gzip off;", "Caddy": "remove: encode", "Traefik": "remove the compress middleware", "Apache": "SetEnv no-gzip 1",
	}},
	"buffering": {"let answers through as they come", map[string]string{
		"nginx": "proxy_buffering off;", "Caddy": "flush_interval -1", "Traefik": "remove the buffering middleware",
		"Apache": "ProxyPass … flushpackets=on", "Cloudflare": "remove response transformations for this host",
	}},
	"request buffering": {"pass bodies on as they come", map[string]string{
		"nginx": "proxy_request_buffering off; proxy_http_version 1.1;", "Traefik": "remove the buffering middleware", "Caddy": "remove: request_buffers",
	}},
	"body": {"raise the proxy's bound to server.max_body_bytes", map[string]string{
		"nginx": "client_max_body_size 8m;", "Caddy": "request_body { max_size 8MB }", "Traefik": "buffering: maxRequestBodyBytes: 8388608",
		"Apache": "LimitRequestBody 8388608", "Cloudflare": "the plan bounds it (100 MB on the free one)",
	}},
}

// fix returns what to do about a fault: for the proxy that answers name, or for all
// that Aegis knows. The proxy may not name itself at all, so that the longer form is
// the common one.
func (x *examination) fix(fault string) string {
	r := remedies[fault]
	if line, ok := r.proxy[x.proxy]; ok {
		return r.all + ". " + x.proxy + ": " + line
	}
	var b strings.Builder
	b.WriteString(r.all)
	for _, name := range slices.Sorted(maps.Keys(r.proxy)) {
		b.WriteString("\n" + name + ": " + r.proxy[name])
	}
	return b.String()
}

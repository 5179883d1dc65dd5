package gitea

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"aegis/proxy"
)

// maxDescription bounds the server's description of its API; Gitea's has about
// 1 MB.
const maxDescription = 16 << 20

// Description fetches the server's own description of its API, Swagger 2.0 in JSON (GET
// /swagger.v1.json beside /api/v1). It asks without a credential, and with cred when that
// is not enough. Errors are [*proxy.Error]. Without one first, as most servers show it to
// everybody and a token need not travel for what is public.
func (c *Client) Description(ctx context.Context, cred proxy.Credential) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	data, err := c.description(ctx, proxy.Credential{})
	var e *proxy.Error
	if errors.As(err, &e) && e.Status >= 300 && e.Status < 500 && cred.Authorization() != "" {
		return c.description(ctx, cred)
	}
	return data, err
}

// description asks once, with a credential or without.
func (c *Client) description(ctx context.Context, cred proxy.Credential) ([]byte, error) {
	// The document is beside /api/v1, not below it, so the address is set by hand.
	req := &request{method: http.MethodGet, accept: mediaJSON, cred: cred, repeatable: true}
	out, err := c.httpRequest(ctx, req)
	if err != nil {
		return nil, err
	}
	const name = "/swagger.v1.json"
	out.URL = &url.URL{
		Scheme: c.scheme, Host: c.host,
		Path:    strings.TrimSuffix(c.prefixPlain, "/api/v1") + name,
		RawPath: strings.TrimSuffix(c.prefix, "/api/v1") + name,
	}
	resp, err := c.pooled.RoundTrip(out)
	if err != nil {
		return nil, transportError(ctx, req, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		// Gitea answers 404 when its administrator switched the page off.
		do := "set ENABLE_SWAGGER = true in section [api] of its app.ini"
		if resp.StatusCode >= 500 {
			do = "it is not well itself"
		}
		return nil, &proxy.Error{
			Kind: proxy.KindUpstreamError, Status: resp.StatusCode,
			Public: "Gitea does not show its API description (/swagger.v1.json answers " +
				strconv.Itoa(resp.StatusCode) + "); " + do,
		}
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDescription+1))
	switch {
	case err != nil:
		return nil, transportError(ctx, req, err)
	case len(data) > maxDescription:
		return nil, proxy.NewError(proxy.KindUpstreamError, "Gitea's API description is larger than 16 MiB", nil)
	}
	return data, nil
}

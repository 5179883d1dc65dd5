package server

import (
	"fmt"
	"slices"

	"aegis/config"
	"aegis/proxy/mask"
	"aegis/spec"
	"aegis/spec/build"
)

// BuildCatalog makes a catalog file of the Swagger 2.0 description of a Gitea or
// Forgejo server, and a report of what differs from the built-in catalog.
func BuildCatalog(swagger []byte) ([]byte, fmt.Stringer, error) {
	builtin, err := spec.Builtin()
	if err != nil {
		return nil, nil, fmt.Errorf("built-in catalog: %w", err)
	}
	cat, report, err := build.FromSwagger(swagger, build.Options{Inputs: spec.Inputs(), Baseline: builtin})
	if err != nil {
		return nil, nil, err
	}
	text, err := build.Encode(cat)
	return text, report, err
}

// newMask returns the masking engine of a configuration, which knows every
// secret in it.
func newMask(cfg *config.Config, rules config.Masking) (*mask.Engine, error) {
	var known []string
	for _, t := range cfg.Auth.Tokens {
		known = append(known, t.Token.Reveal(), t.GiteaToken.Reveal())
	}
	if !cfg.Server.CursorKey.IsZero() {
		known = append(known, cfg.Server.CursorKey.Reveal())
	}
	if !cfg.TLS.ACME.EABMACKey.IsZero() {
		known = append(known, cfg.TLS.ACME.EABMACKey.Reveal())
	}
	for _, s := range cfg.Audit.Sinks {
		if !s.Token.IsZero() {
			known = append(known, s.Token.Reveal())
		}
	}
	for _, h := range cfg.Tracing.Headers {
		known = append(known, h.Value.Reveal())
	}
	for _, s := range cfg.Masking.ExtraSecrets {
		known = append(known, s.Reveal())
	}
	known = append(known, cfg.Auth.OAuth.ClientSecret.Reveal(), cfg.Policy.WriteToken.Reveal())
	for _, c := range cfg.Auth.OAuth.Clients {
		known = append(known, c.Secret.Reveal())
	}
	for _, k := range append(cfg.Store.Keys[:len(cfg.Store.Keys):len(cfg.Store.Keys)], cfg.Store.Password, cfg.Store.Sentinel.Password) {
		known = append(known, k.Reveal())
	}
	for _, t := range cfg.Teams {
		known = append(known, t.Policy.WriteToken.Reveal())
		for _, s := range t.Masking.ExtraSecrets {
			known = append(known, s.Reveal())
		}
	}
	known = slices.DeleteFunc(known, func(s string) bool { return s == "" })
	return mask.New(rules, known)
}

// Mask returns what masks texts as the results of a configuration are masked: JSON or
// plain text comes back without secrets, with the number of hits by rule.
func Mask(cfg *config.Config) (func(text []byte) ([]byte, map[string]int), error) {
	engine, err := newMask(cfg, cfg.Masking)
	if err != nil {
		return nil, err
	}
	return func(text []byte) ([]byte, map[string]int) { return engine.Bytes(text) }, nil
}

// APIVersion names the API that the built-in catalog was made of, such as
// "Gitea API 28.1.0".
func APIVersion() (string, error) {
	cat, err := spec.Builtin()
	if err != nil {
		return "", fmt.Errorf("built-in catalog: %w", err)
	}
	return cat.Source, nil
}

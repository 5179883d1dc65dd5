package server

import (
	"fmt"

	"aegis/config"
	"aegis/proxy/mask"
	"aegis/spec"
	"aegis/spec/build"
)

// BuildCatalog makes a catalog file of the Swagger 2.0 description of a Gitea or
// Forgejo server, and a report of what differs from the built-in catalog.
func BuildCatalog(swagger []byte) ([]byte, fmt.Stringer, error) {
	// By the built-in catalog, too: operations that Forgejo has under another id keep the names
	// of their tools.
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
// secret in it: those are masked exactly, whatever the rules find.
func newMask(cfg *config.Config, rules config.Masking) (*mask.Engine, error) {
	return mask.New(rules, cfg.Secrets())
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

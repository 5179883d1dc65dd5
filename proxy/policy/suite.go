package policy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"aegis/proxy"
)

// Suite is a file of calls and the decisions that are expected; docs/teams.md
// describes its form. It takes the place of Gitea: what calls do not say comes from
// the file.
type Suite struct {
	Login        string                `yaml:"login"`
	Repositories map[string]Repository `yaml:"repositories"`
	Pulls        map[string]suitePull  `yaml:"pulls"`
	Releases     map[string]Release    `yaml:"releases"`
	Calls        []suiteCall           `yaml:"calls"`
}

type suitePull struct {
	Pull `yaml:",inline"`
	// Files are what it changes; absent: they are not known.
	Files []string `yaml:"files"`
}

// suiteCall is one call and what is expected of it: allow, confirm or deny, and by
// which rule.
type suiteCall struct {
	Name   string         `yaml:"name"`
	Team   string         `yaml:"team"`
	Login  string         `yaml:"login"`
	Tool   string         `yaml:"tool"`
	Args   map[string]any `yaml:"args"`
	Expect string         `yaml:"expect"`
	Rule   string         `yaml:"rule"`
}

// maxCalls bounds a suite.
const maxCalls = 10_000

// goNames matches how the YAML library names a key that a struct lacks.
var goNames = regexp.MustCompile(`field (\S+) not found in type \S+`)

// ParseSuite reads a suite. It is as strict as the configuration: an unknown key
// and a second document are errors. The error names the line or the call.
func ParseSuite(data []byte) (*Suite, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var s Suite
	if err := dec.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the file is no list of calls: %s",
			goNames.ReplaceAllString(err.Error(), "unknown key $1"))
	}
	if err := dec.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file holds more than one document")
	}
	// A suite of nothing would pass whatever the rules are.
	if len(s.Calls) == 0 || len(s.Calls) > maxCalls {
		return nil, fmt.Errorf("calls: must list 1 to %d calls", maxCalls)
	}
	var problems []error
	for i := range s.Calls {
		c := &s.Calls[i]
		switch {
		case c.Tool == "":
			problems = append(problems, fmt.Errorf("calls[%d]: tool: required", i))
		case c.Expect != "allow" && c.Expect != "confirm" && c.Expect != "deny":
			problems = append(problems, fmt.Errorf("calls[%d]: expect: must be allow, confirm or deny", i))
		case c.Rule != "" && c.Expect != "deny":
			problems = append(problems, fmt.Errorf("calls[%d]: rule: only a denied call has one", i))
		}
	}
	return &s, errors.Join(problems...)
}

// Outcome is what became of one call of a suite. Failed ones keep the real verdict, as its
// text says what to change.
type Outcome struct {
	// Name is the call's name, or its place and tool.
	Name string
	// Team is the endpoint's name.
	Team string
	// Want is the expected decision, Got the real one.
	Want string
	Got  Verdict
	// Err is why there is no decision: an unknown team, rules that cannot be used.
	Err error
	// OK says that the decision, and the rule if one is named, are as expected.
	OK bool
}

// Run decides about every call. Team returns an endpoint by name, "" for the default one;
// false when there is none. A mistake in one call does not end the run: who changes
// rules wants to see all that they changed.
func (s *Suite) Run(ctx context.Context, team func(name string) (Endpoint, bool)) []Outcome {
	type ready struct {
		endpoint Endpoint
		policy   *Policy
		err      error
	}
	teams := map[string]ready{}
	out := make([]Outcome, 0, len(s.Calls))
	for i := range s.Calls {
		c := &s.Calls[i]
		// Rules are compiled once for each team, not for each call.
		t, known := teams[c.Team]
		if !known {
			var found bool
			if t.endpoint, found = team(c.Team); found {
				t.policy, t.err = New(t.endpoint.Rules, Options{Operations: t.endpoint.Operations, Lookup: s})
			} else {
				t.err = errors.New("there is no such team")
			}
			teams[c.Team] = t
		}
		name := cmp.Or(c.Name, fmt.Sprintf("calls[%d] %s", i, c.Tool))
		o := Outcome{Name: name, Team: c.Team, Want: c.Expect, Err: t.err}
		if c.Rule != "" {
			o.Want += " by " + c.Rule
		}
		if o.Err == nil {
			o.Got, o.Err = s.decide(ctx, t.policy, t.endpoint, c)
		}
		o.OK = o.Err == nil && o.Got.Allowed == (c.Expect != "deny") &&
			o.Got.Confirm == (c.Expect == "confirm") && ruleFits(c.Rule, o.Got.Rule)
		out = append(out, o)
	}
	return out
}

func (s *Suite) decide(ctx context.Context, p *Policy, e Endpoint, c *suiteCall) (Verdict, error) {
	args, err := json.Marshal(c.Args)
	if err != nil {
		return Verdict{}, fmt.Errorf("args: %w", err)
	}
	return p.try(ctx, e, Request{Login: cmp.Or(c.Login, s.Login), Tool: c.Tool, Args: args}), nil
}

// ruleFits reports whether a rule is the wanted one or below it: repos is what
// repos.deny[1] belongs to.
func ruleFits(want, got string) bool {
	rest, ok := strings.CutPrefix(got, want)
	return ok && (want == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Repository answers from the file.
func (s *Suite) Repository(_ context.Context, _ *proxy.Call, at Place) (Repository, error) {
	r, err := said("repositories", s.Repositories, at.Owner+"/"+at.Repo)
	if err == nil && r.DefaultBranch == "" { // an entry without it says too little, as for Gitea's own answers
		err = errors.New("repositories: the file does not say it")
	}
	return r, err
}

// Pull answers from the file.
func (s *Suite) Pull(_ context.Context, _ *proxy.Call, at Place) (Pull, error) {
	p, err := said("pulls", s.Pulls, at.String())
	return p.Pull, err
}

// Files answers from the file.
func (s *Suite) Files(_ context.Context, _ *proxy.Call, at Place) ([]string, error) {
	p, err := said("pulls", s.Pulls, at.String())
	if err == nil && p.Files == nil {
		err = errors.New("pulls: the file does not say which files it changes")
	}
	return p.Files, err
}

// Release answers from the file.
func (s *Suite) Release(_ context.Context, _ *proxy.Call, at Place) (Release, error) {
	return said("releases", s.Releases, at.String())
}

// said returns the entry of a name in a part of the file. Gitea compares names without
// case, and people write them as they like. The error makes the policy refuse the call.
func said[V any](part string, entries map[string]V, name string) (v V, err error) {
	for key, entry := range entries {
		if strings.EqualFold(key, name) {
			return entry, nil
		}
	}
	return v, errors.New(part + ": the file does not say it")
}

// String is the place as suites write it: acme/web#7.
func (at Place) String() string { return fmt.Sprintf("%s/%s#%d", at.Owner, at.Repo, at.Number) }

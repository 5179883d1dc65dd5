package config

import (
	"slices"

	"gopkg.in/yaml.v3"
)

// teamsLast returns the root mapping with the key teams at its end: a team begins
// as a copy of what the rest of the file says, wherever the file has it.
func teamsLast(n *yaml.Node) *yaml.Node {
	i := slices.IndexFunc(n.Content, func(k *yaml.Node) bool { return k.Kind == yaml.ScalarNode && k.Value == "teams" })
	if i < 0 || i%2 != 0 || i+1 >= len(n.Content) {
		return n
	}
	out := *n
	out.Content = slices.Concat(n.Content[:i], n.Content[i+2:], n.Content[i:i+2])
	return &out
}

// inherit returns the team that sets nothing of its own. Its members are never
// inherited: who may enter must be said for each endpoint.
func inherit(c *Config) Team {
	return Team{
		Tools: c.Tools, Results: c.Results, Masking: c.Masking, Policy: c.Policy,
		Limits: TeamLimits{
			Identity: c.Limits.Identity, Team: c.Limits.Team, Read: c.Limits.Read, Write: c.Limits.Write,
			Destructive: c.Limits.Destructive, Tools: c.Limits.Tools,
		},
	}
}

// DefaultTeam returns the rules of the default endpoint in a team's form.
func (c *Config) DefaultTeam() Team {
	t := inherit(c)
	t.Members = c.Members
	return t
}

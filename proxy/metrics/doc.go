// Package metrics counts what Aegis does, for Prometheus. Every label has few
// values, all of them Aegis's own or the configuration's: classes of tools, kinds
// of failure, teams, masking rules, buckets. Nothing that a client writes becomes
// a label, and no name of a person does.
package metrics

// Package proxy is the vocabulary that the parts of Aegis share: a [Call] of a
// [Tool] on behalf of an [Identity], its [Result] or [Error], and the [Handler],
// [Stage] and [Chain] that carry one through the others.
//
// It knows no configuration and does no I/O but for [WriteError], which answers an HTTP request
// with an error. The packages below proxy/ know this one and config, never each other;
// proxy/server alone joins them.
package proxy

//go:generate go test -run TestPackagesAreDocumented -count=1 . -args -update

// Package build makes a [spec.Catalog] from the Swagger 2.0 description of a
// Gitea or Forgejo server and the hand-made YAML files of package spec.
//
// It works in two steps: [ParseSwagger] reduces a description to [Facts], and
// [Build] turns facts into tools. [FromSwagger] does both for "aegis catalog build".
// The pinned version is committed as the description that [Facts.Swagger] writes:
// it holds what tools need and none of Gitea's prose. Whatever
// a description holds, the outcome is a catalog and a [Report] of what was
// derived or left out, or an error; never a panic.
package build

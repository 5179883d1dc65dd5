// Package audit keeps the log that can be believed: who did what, when, through
// which client, with which result.
//
// A [Log] is a file of JSON lines. Each line holds the SHA-256 of the one before
// and its own, so that a change anywhere breaks the chain; signed checkpoints pin
// the chain to a key, so that a rewritten or shortened log shows too. [Verify]
// finds the first line that is wrong and says why. docs/audit.md has the format.
//
// A call leaves two records: [ToolCallStarted] before Gitea is asked, and
// exactly one [ToolInvocation] before the client is answered. A log that cannot
// be written refuses calls until it can.
package audit

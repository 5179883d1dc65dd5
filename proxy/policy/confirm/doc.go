// Package confirm has a person permit a call before it runs. A model may be told
// by any text that it reads to delete a repository; a person who is asked "delete the
// repository acme/infra?" and must type its name is not so easily told.
//
// A client that can ask its user (MCP input requests, protocol 2026-07-28) gets the
// question as the call's result and comes back with the answer. For other clients
// the call is refused at once, or waits for a one-time code that the person reads
// on /account and that no answer to the model ever holds. Nothing here waits.
//
// Questions are stateless: what comes back is authenticated and bound to identity,
// endpoint, tool and arguments, and works once.
package confirm

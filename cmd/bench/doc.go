// Command bench measures what Aegis costs: the same answers of one stub upstream
// are fetched directly, through a plain httputil.ReverseProxy, and as MCP tool
// calls through Aegis, in interleaved rounds. Stub, proxy and Aegis are processes
// of their own, as in service. It prints medians and, since absolute times mean
// little on a noisy machine, their ratios to the plain proxy in the same round, with CPU time and
// memory.
//
// Every answer is checked, so a fast wrong one does not count.
//
// In a round each target gets the same calls from the same clients, one target after the
// other, and the next round begins anew: what else the machine does meets all of them. The
// first round warms up connections and caches and is not counted. A ratio is that of two times
// in one round; the median of the rounds is printed, and the spread from the 10th to the 90th
// percentile, within which a difference means nothing.
//
// Processor time is that of the target's process, from /proc, in ticks of 10 ms, so it needs
// some hundred calls to mean anything. Allocations are what the process counts itself: Aegis in
// its metrics, the others in the same form. Memory is the resident size, which depends on when
// the last collection was.
//
// The program starts itself in other roles, as the stub, the proxy and the static handler, so
// that none of them shares a heap, a scheduler or a collector with what is measured.
//
//	go run ./cmd/bench                                      # all of it, some minutes
//	go run ./cmd/bench -rounds 3 -calls 100 -soak 0         # a first look
//	go run ./cmd/bench -stub 127.0.0.1:3999                 # the stub alone, for other servers
//	go run ./cmd/bench -url http://127.0.0.1:8080/mcp -token T \
//		-tool get_issue -args '{"owner":"acme"}' -path /repos/acme/infra/issues/1
//
// With -url it measures one tool call of any MCP server over HTTP. Point that server
// at the stub, give the stub's address with -upstream, and name with -path the answer
// of the stub that the call is for; the ratios are then to that answer through the
// plain proxy.
package main

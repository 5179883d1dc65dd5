// Command bench measures what Aegis costs: the same answers of one stub upstream
// are fetched directly, through a plain httputil.ReverseProxy, and as MCP tool
// calls through Aegis, in interleaved rounds. Stub, proxy and Aegis are processes
// of their own, as in service. It prints medians and, since absolute times mean
// little on a noisy machine, their ratios to the plain proxy in the same round, with CPU time and
// memory.
//
// Every answer is checked, so a fast wrong one does not count.
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

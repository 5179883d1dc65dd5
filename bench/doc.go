// Command bench measures what Aegis costs: the same answers of one stub upstream
// are fetched directly, through a plain httputil.ReverseProxy, and as MCP tool
// calls through Aegis, all in one process, in interleaved rounds. It prints
// medians and, what counts on a noisy machine, their ratios to the plain proxy.
//
// Every answer is checked, so a fast wrong one does not count.
package main

// Package http1 sends requests to one server over plain HTTP/1.1 (RFC 9112) on the
// goroutine of the caller.
//
// net/http's Transport hands each request to two goroutines of its connection and
// waits for them. On an idle machine waking them, and the processors they run on,
// takes longer than the exchange with a server next door. This package has the
// transport's connection pool and nothing of its generality; requests are written and
// answers read by net/http itself ([http.Request.Write], [http.ReadResponse]).
//
// What it leaves out belongs to net/http: TLS, HTTP/2, proxies, compression,
// upgrades, Expect: 100-continue.
package http1

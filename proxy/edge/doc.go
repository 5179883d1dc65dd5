// Package edge is the first thing a request meets: it counts connections, names
// the request, finds where it comes from, refuses heads that are too large and
// Host and Origin headers that point at DNS rebinding or a foreign web page, and
// sets the headers that keep browsers from misusing an answer. It looks at the
// request's head only; nothing of a refused request's body is read.
package edge

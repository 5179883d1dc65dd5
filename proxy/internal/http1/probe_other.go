//go:build !unix

package http1

const canProbe = false

func (c *conn) quiet() bool { return false }

// Package server joins the parts of Aegis: it is the only package that names two
// of its siblings. [New] builds everything from a configuration short of
// listening, so that checking a configuration and serving it take the same path;
// [Server.Serve] answers requests until it is told to stop and lets calls in
// flight finish.
package server

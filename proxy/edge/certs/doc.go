// Package certs encrypts the listener. It gets certificates from an ACME
// authority (RFC 8555) and renews them, or reads them from files and reads them
// again when they change; it asks clients for certificates when it is told to;
// and it answers on the plain port, where it serves nothing but ACME challenges
// and the way to https.
//
// It fails closed: while there is no certificate, handshakes fail, and nothing
// is served in plain text instead.
package certs

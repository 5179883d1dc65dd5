// Package systemd speaks the two small protocols between systemd and a service:
// sockets that are handed over at the start (sd_listen_fds(3)), and messages about
// the service's state, the watchdog among them (sd_notify(3), sd_watchdog_enabled(3)).
// It needs no systemd library, and does nothing where there is no systemd.
package systemd

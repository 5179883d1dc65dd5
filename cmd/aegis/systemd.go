package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/rs/zerolog"

	"aegis/cmd/aegis/internal/doctor"
	"aegis/cmd/aegis/internal/systemd"
	"aegis/proxy/server"
)

// plainSocket is what the socket unit of the plain listener beside TLS must have
// as FileDescriptorName=; every other socket is the main one.
const plainSocket = "http"

// service is what systemd, when it started this process, gave and wants to hear.
// Without a supervisor it opens its own sockets, and its
// messages go nowhere.
type service struct {
	manager     *systemd.Manager
	main, plain net.Listener // nil when they must be opened here
	log         zerolog.Logger
}

// newService looks at what started this process, once. The variables of the environment
// are for one process and are read once: a second reading would take descriptors that
// are something else by then.
func newService() (*service, error) {
	m, err := systemd.Detect()
	if err != nil {
		return nil, err
	}
	// The log comes with the configuration, and the sockets must be known before that.
	s := &service{manager: m, log: zerolog.Nop()}
	for _, socket := range m.Sockets() {
		switch {
		case socket.Name == plainSocket && s.plain == nil:
			s.plain = socket
		case socket.Name != plainSocket && s.main == nil:
			s.main = socket
		default:
			m.Close()
			return nil, fmt.Errorf("systemd hands over two sockets for one purpose, the second is %s; "+
				"Aegis serves one, and one with FileDescriptorName=%s beside it", socket.Addr(), plainSocket)
		}
	}
	return s, nil
}

// Close closes the sockets that were handed over.
func (s *service) Close() { s.manager.Close() }

// listenMain returns systemd's socket, or opens one. An address that differs from the
// configuration's is an error: doctor, health and the checks of Host would go by the
// wrong one.
func (s *service) listenMain(ctx context.Context, addr string) (net.Listener, error) {
	if s.main == nil {
		return listen(ctx, addr, mainHint)
	}
	return s.main, fits(s.main.Addr(), addr, "listen")
}

// listenPlain is listenMain for the plain listener beside it; addr is "" when the
// configuration has none.
func (s *service) listenPlain(ctx context.Context, addr string) (net.Listener, error) {
	switch {
	case s.plain != nil && addr == "":
		return nil, fmt.Errorf("systemd hands over a socket for plain HTTP (%s) and the configuration has no "+
			"use for it; set tls.mode and tls.http_listen, or disable the socket unit", s.plain.Addr())
	case addr == "":
		return nil, nil
	case s.plain != nil:
		return s.plain, fits(s.plain.Addr(), addr, "tls.http_listen")
	}
	return listen(ctx, addr, "it answers ACME challenges and redirects, see tls.http_listen; "+
		"ports below 1024 need the capability CAP_NET_BIND_SERVICE")
}

// fits holds that systemd listens where the configuration says: the checks of the
// configuration, "aegis health" and the endpoint's address go by that.
func fits(have net.Addr, want, key string) error {
	host, port, err := net.SplitHostPort(want)
	if err != nil {
		return err
	}
	tcp, ok := have.(*net.TCPAddr)
	if !ok {
		return errors.New("systemd's socket is no TCP socket")
	}
	// The configuration was checked: this only converts it.
	number, err := net.LookupPort("tcp", port)
	if err != nil {
		return err
	}
	// Of the host only this is compared: a unit may say [::]:8080 where the
	// configuration says 0.0.0.0:8080, and both mean every interface. A listener that
	// is open where the configuration says loopback is refused, since loopback permits
	// more.
	ip := net.ParseIP(host)
	local := strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
	if tcp.Port != number || local && !tcp.IP.IsLoopback() {
		return fmt.Errorf("systemd's socket listens on %s, the configuration says %s; "+
			"write the same address after %s and ListenStream=", have, want, key)
	}
	return nil
}

// serving reports to systemd that the service is up, and then regularly that it is
// well, until stop is called. A service that stops answering its own health check is
// ended and started again by systemd (WatchdogSec= in the unit).
func (s *service) serving(live *server.Live, log zerolog.Logger) (stop func()) {
	s.log = log
	s.logged(s.manager.Ready("serving " + live.Server().Endpoint()))
	// Not the context of serve: the watchdog goes on while calls in flight finish,
	// which may take longer than its interval.
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The handlers are called, and no connection is made: a flood that fills the
		// connection caps must not become a restart, and a deadlock must.
		s.manager.Watch(ctx, func(ctx context.Context) error { return doctor.Healthy(ctx, live) }, func(err error) {
			s.log.Error().Err(err).Msg("systemd's watchdog is not told that all is well")
		})
	}()
	return func() {
		cancel()
		<-done
	}
}

// stopping reports to systemd that the end has begun, so that it waits for calls in flight.
func (s *service) stopping() {
	s.logged(s.manager.Stopping("stopping: calls in flight may finish"))
}

// reloading runs a reload between the two messages that systemd waits for with
// Type=notify-reload, and reports what came of it.
func (s *service) reloading(live *server.Live, reload func()) {
	s.logged(s.manager.Reloading())
	reload()
	// A reload that failed leaves the service up with its old configuration. "systemctl
	// status" shows the line, so that this is seen.
	status := "serving " + live.Server().Endpoint()
	if problem := live.Status().Problem; problem != "" {
		status += "; " + problem
	}
	s.logged(s.manager.Ready(status))
}

// logged logs an error of a message to systemd; serving goes on. A manager that is gone
// must not take the service with it.
func (s *service) logged(err error) {
	if err != nil {
		s.log.Warn().Err(err).Msg("systemd does not hear of this service")
	}
}

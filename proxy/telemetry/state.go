package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// State is what others know and metrics show when they are asked for. A nil
// function shows nothing.
type State struct {
	// Connections returns the open client connections.
	Connections func() int
	// Certificates returns the certificates by host.
	Certificates func() map[string]Certificate
	// Reload returns what became of reloading the configuration.
	Reload func() Reload
	// Audit returns how far the audit log's disk is behind: the records that wait
	// to be written, and the age of the oldest that may not be on the disk.
	Audit func() (pending int, oldest time.Duration)
	// Store returns the state of the store that replicas share.
	Store func() Store
}

// Store is the state of the store that replicas share.
type Store struct {
	// Up is false while it does not answer.
	Up bool
	// Replicas is the last known number of replicas.
	Replicas int
	// Uncounted is how many calls could not be counted by shared limits.
	Uncounted int
}

// Certificate is the state of a host's certificate.
type Certificate struct {
	// Ends is when it ends; zero while there is none.
	Ends time.Time
	// OK is false when it could not be got, renewed or read again.
	OK bool
}

// Reload is the state of reloading the configuration.
type Reload struct {
	// OK is false while the file was changed and could not be used.
	OK bool
	// Loaded is when the configuration in force was loaded.
	Loaded time.Time
	// Reloads and Failures count attempts since the start.
	Reloads, Failures int
}

// Show adds the state to what is served. Call it once.
func (m *Metrics) Show(s State) {
	if m != nil {
		m.registry.MustRegister(&state{s})
	}
}

// state collects at the time of asking, so that no gauge has to be kept up to date.
type state struct{ s State }

// Describe announces nothing: which of the metrics there are depends on what is
// configured, and an unchecked collector may decide when it is asked.
func (c *state) Describe(chan<- *prometheus.Desc) {}

// Collect sends the state of this moment.
func (c *state) Collect(out chan<- prometheus.Metric) {
	send := func(kind prometheus.ValueType, v float64, name, help string, host ...string) {
		d := prometheus.NewDesc(name, help, []string{"host"}[:len(host)], nil)
		out <- prometheus.MustNewConstMetric(d, kind, v, host...)
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	if c.s.Connections != nil {
		send(gauge, float64(c.s.Connections()), "aegis_connections_open", "Open client connections.")
	}
	if c.s.Certificates != nil {
		for host, cert := range c.s.Certificates() {
			send(gauge, unix(cert.Ends), "aegis_certificate_not_after_timestamp_seconds",
				"When a host's certificate ends (Unix time); 0 while there is none.", host)
			send(gauge, truth(cert.OK), "aegis_certificate_renewal_successful",
				"0 while a host's certificate could not be got, renewed or read again; /readyz says why.", host)
		}
	}
	if c.s.Audit != nil {
		pending, oldest := c.s.Audit()
		send(gauge, float64(pending), "aegis_audit_pending_records", "Audit records that wait to be written.")
		send(gauge, oldest.Seconds(), "aegis_audit_lag_seconds",
			"Age of the oldest audit record that may not be on the disk yet; 0 without one.")
	}
	if c.s.Store != nil {
		s := c.s.Store()
		send(gauge, truth(s.Up), "aegis_store_up", "0 while the store that replicas share does not answer.")
		send(gauge, float64(s.Replicas), "aegis_replicas", "Replicas that share the store, as last counted.")
		send(counter, float64(s.Uncounted), "aegis_limits_uncounted_total",
			"Calls that shared limits could not count, since the store did not answer.")
	}
	if c.s.Reload != nil {
		r := c.s.Reload()
		send(gauge, truth(r.OK), "aegis_config_last_reload_successful",
			"0 while the configuration file was changed and could not be used.")
		send(gauge, unix(r.Loaded), "aegis_config_loaded_timestamp_seconds",
			"When the configuration in force was loaded (Unix time).")
		send(counter, float64(r.Reloads), "aegis_config_reloads_total", "Times that a changed configuration took over.")
		send(counter, float64(r.Failures), "aegis_config_reload_failures_total",
			"Times that a changed configuration could not be used.")
	}
}

func truth(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

// unix is a time as Prometheus has it; 0 for none.
func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}

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
	if c.s.Connections != nil {
		gauge(out, desc("aegis_connections_open", "Open client connections."), float64(c.s.Connections()))
	}
	if c.s.Certificates != nil {
		d := desc("aegis_certificate_not_after_timestamp_seconds",
			"When a host's certificate ends (Unix time); 0 while there is none.", "host")
		ok := desc("aegis_certificate_renewal_successful",
			"0 while a host's certificate could not be got, renewed or read again; /readyz says why.", "host")
		for host, cert := range c.s.Certificates() {
			gauge(out, d, unix(cert.Ends), host)
			gauge(out, ok, truth(cert.OK), host)
		}
	}
	if c.s.Audit != nil {
		pending, oldest := c.s.Audit()
		gauge(out, desc("aegis_audit_pending_records", "Audit records that wait to be written."), float64(pending))
		gauge(out, desc("aegis_audit_lag_seconds",
			"Age of the oldest audit record that may not be on the disk yet; 0 without one."), oldest.Seconds())
	}
	if c.s.Store != nil {
		s := c.s.Store()
		gauge(out, desc("aegis_store_up", "0 while the store that replicas share does not answer."), truth(s.Up))
		gauge(out, desc("aegis_replicas", "Replicas that share the store, as last counted."), float64(s.Replicas))
		counter(out, desc("aegis_limits_uncounted_total",
			"Calls that shared limits could not count, since the store did not answer."), s.Uncounted)
	}
	if c.s.Reload == nil {
		return
	}
	r := c.s.Reload()
	gauge(out, desc("aegis_config_last_reload_successful",
		"0 while the configuration file was changed and could not be used."), truth(r.OK))
	gauge(out, desc("aegis_config_loaded_timestamp_seconds", "When the configuration in force was loaded (Unix time)."),
		unix(r.Loaded))
	counter(out, desc("aegis_config_reloads_total", "Times that a changed configuration took over."), r.Reloads)
	counter(out, desc("aegis_config_reload_failures_total", "Times that a changed configuration could not be used."),
		r.Failures)
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

func gauge(out chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func counter(out chan<- prometheus.Metric, d *prometheus.Desc, n int) {
	out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
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

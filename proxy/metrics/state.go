package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// State is what others know and metrics show when they are asked for. A nil
// function shows nothing.
type State struct {
	// Connections returns the open client connections.
	Connections func() int
	// Certificates returns when the certificate of each configured host ends; the
	// zero time for a certificate that is not there.
	Certificates func() map[string]time.Time
	// Reload returns what became of reloading the configuration.
	Reload func() Reload
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

// state collects at the time of asking, so that nobody has to keep gauges right.
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
		d := desc("aegis_certificate_not_after_timestamp_seconds", "When a host's certificate ends (Unix time); 0 while there is none.", "host")
		for host, end := range c.s.Certificates() {
			gauge(out, d, unix(end), host)
		}
	}
	if c.s.Reload == nil {
		return
	}
	r := c.s.Reload()
	ok := 0.0
	if r.OK {
		ok = 1
	}
	gauge(out, desc("aegis_config_last_reload_successful", "0 while the configuration file was changed and could not be used."), ok)
	gauge(out, desc("aegis_config_loaded_timestamp_seconds", "When the configuration in force was loaded (Unix time)."), unix(r.Loaded))
	counter(out, desc("aegis_config_reloads_total", "Times that a changed configuration took over."), r.Reloads)
	counter(out, desc("aegis_config_reload_failures_total", "Times that a changed configuration could not be used."), r.Failures)
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

func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}

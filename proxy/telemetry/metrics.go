package telemetry

import (
	"context"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"aegis/proxy"
)

// Metrics holds all numbers of a process. It is safe for concurrent use. A nil
// *Metrics counts nothing.
type Metrics struct {
	registry *prometheus.Registry

	calls    *prometheus.CounterVec
	inFlight prometheus.Gauge
	total    *prometheus.HistogramVec
	upstream *prometheus.HistogramVec
	overhead *prometheus.HistogramVec
	attempts prometheus.Counter
	bytes    *prometheus.CounterVec
	masked   *prometheus.CounterVec
	limited  *prometheus.CounterVec
	unfit    *prometheus.CounterVec
}

// Build names what is running.
type Build struct {
	// Version is that of Aegis, Catalog that of the tools.
	Version, Catalog string
}

// NewMetrics returns metrics that count from zero.
func NewMetrics(b Build) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		calls: counters("aegis_calls_total",
			"Tool calls by team, class of tool and outcome (ok, or the kind of the failure).", "team", "class", "kind"),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aegis_calls_in_flight", Help: "Tool calls that are being answered."}),
		total: histogram("aegis_call_duration_seconds", "Time from a call to its result.", 1e-3),
		upstream: histogram("aegis_upstream_duration_seconds",
			"Time of a call that was spent waiting for Gitea, retries included.", 1e-3),
		overhead: histogram("aegis_overhead_duration_seconds", "Time of a call that Aegis itself took.", 1e-5),
		attempts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aegis_upstream_requests_total", Help: "HTTP requests that calls sent to Gitea."}),
		bytes: counters("aegis_bytes_total",
			"Body bytes of calls: received from and sent to Gitea, and results for clients.", "direction"),
		masked:  counters("aegis_mask_hits_total", "Masked secrets by rule.", "rule"),
		limited: counters("aegis_limit_refusals_total", "What limits refused, by bucket or cap.", "bucket"),
		unfit: counters("aegis_schema_mismatches_total",
			"Results that broke their tool's output schema and went out without structured content.", "tool"),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "aegis_build_info", Help: "Always 1; what is running.",
		ConstLabels: prometheus.Labels{"version": b.Version, "go_version": runtime.Version(), "catalog": b.Catalog},
	})
	info.Set(1)
	m.registry.MustRegister(m.calls, m.inFlight, m.total, m.upstream, m.overhead, m.attempts, m.bytes, m.masked,
		m.limited, m.unfit, info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// histogram has buckets from least seconds upwards, each twice as wide as the one
// before; eighteen of them reach from 1 ms to two minutes.
func histogram(name, help string, least float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(least, 2, 18),
	}, []string{"class"})
}

// Handler answers GET /metrics and nothing else.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux() // other methods get a 405, other paths a 404
	// A scrape gathers everything anew, so that only some may run at a time.
	o := promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, o))
	return mux
}

// Stage counts calls. It must be the first, so that it sees what became of each;
// nil when m is.
func (m *Metrics) Stage() proxy.Stage {
	if m == nil {
		return nil
	}
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			began := time.Now()
			m.inFlight.Inc()
			defer m.inFlight.Dec()
			res, err := next.Handle(ctx, c)
			m.count(c, res, err, time.Since(began))
			return res, err
		})
	}
}

// count adds one call.
func (m *Metrics) count(c *proxy.Call, res *proxy.Result, err error, took time.Duration) {
	o := outcomeOf(c, res, err)
	m.calls.WithLabelValues(o.team, o.class, o.kind).Inc()
	m.total.WithLabelValues(o.class).Observe(took.Seconds())
	m.overhead.WithLabelValues(o.class).Observe(max(0, took-c.Stats.Upstream).Seconds())
	if c.Stats.Attempts > 0 {
		m.upstream.WithLabelValues(o.class).Observe(c.Stats.Upstream.Seconds())
		m.attempts.Add(float64(c.Stats.Attempts))
	}
	m.bytes.WithLabelValues("from_gitea").Add(float64(c.Stats.BytesIn))
	m.bytes.WithLabelValues("to_gitea").Add(float64(c.Stats.BytesOut))
	if res != nil {
		m.bytes.WithLabelValues("to_client").Add(float64(res.Size() + len(res.Structured)))
	}
	// By tool, so that a report can say whose schema is wrong. There are at most as many labels
	// as tools: a call of an unknown one has no result that could be checked.
	if c.Stats.SchemaMismatch != "" {
		m.unfit.WithLabelValues(o.tool).Inc()
	}
	for rule, hits := range c.Stats.MaskHits {
		m.masked.WithLabelValues(rule).Add(float64(hits))
	}
}

// Refused counts a refusal by a bucket or cap, which must be one of a fixed set
// of names.
func (m *Metrics) Refused(bucket string) {
	if m != nil {
		m.limited.WithLabelValues(bucket).Inc()
	}
}

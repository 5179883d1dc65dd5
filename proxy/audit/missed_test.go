package audit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy/audit"
)

func suppressed(list []audit.Record) (n uint64) {
	for _, r := range list {
		n += r.Detail.Suppressed
	}
	return n
}

// TestSuppressedAreCountedAtTheStop: every request is a record or in a count.
func TestSuppressedAreCountedAtTheStop(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.o.Now = (&clock{at: time.Now()}).now
	r.open()
	for range 250 {
		r.log.Event(audit.BearerRefused, nil, audit.Detail{Reason: "no token"})
	}
	r.log.Close()
	list := r.records()
	refused := of(list, audit.BearerRefused)
	if len(refused) != 101 || suppressed(refused) != 150 {
		t.Errorf("%d records count %d", len(refused), suppressed(refused))
	}
	if rep := r.mustVerify(); list[len(list)-2].Event != audit.Stop || len(rep.Notes) != 0 {
		t.Errorf("the last records are %+v, notes %v", list[len(list)-3:], rep.Notes)
	}
}

// TestSuppressedAreCountedInTime: a minute later, while the log is in use.
func TestSuppressedAreCountedInTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	c := &clock{at: time.Now()}
	r.o.Now = c.now
	r.open()
	for range 110 {
		r.log.Event(audit.BearerRefused, nil, audit.Detail{Reason: "no token"})
	}
	r.calls(1)
	if n := suppressed(of(r.records(), audit.BearerRefused)); n != 0 {
		t.Errorf("%d are counted at once", n)
	}
	c.add(61 * time.Second)
	r.calls(1)
	eventually(t, "the count is recorded", func() bool { return suppressed(of(r.records(), audit.BearerRefused)) == 10 })
	r.log.Close()
	if n := suppressed(of(r.records(), audit.BearerRefused)); n != 10 {
		t.Errorf("%d are counted in the end", n)
	}
	r.mustVerify()
}

// TestSinkGapIsCountedAtTheStop: the receiver never comes back.
func TestSinkGapIsCountedAtTheStop(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusServiceUnavailable)
	}))
	defer srv.Close()
	r := withSink(t, config.AuditSink{Type: "http", URL: parseURL(t, srv.URL), Buffer: 10})
	r.farewell = 20 * time.Millisecond
	r.open()
	r.calls(50)
	r.log.Close()
	list := r.records()
	gap := of(list, audit.SinkGap)
	if len(gap) != 1 || gap[0].Detail.Sink != "http" || gap[0].Detail.Count != uint64(len(list)-3-10) {
		t.Errorf("%d records, gap %+v", len(list), gap)
	}
	if list[len(list)-2].Event != audit.Stop {
		t.Errorf("the last records are %+v", list[len(list)-3:])
	}
	r.mustVerify()
}

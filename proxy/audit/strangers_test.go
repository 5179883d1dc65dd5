package audit_test

import (
	"testing"
	"time"

	"aegis/proxy"
	"aegis/proxy/audit"
)

// TestDenialsOfStrangersDoNotFloodTheLog, and what people allow is all there.
func TestDenialsOfStrangersDoNotFloodTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.o.Now = (&clock{at: time.Now()}).now
	r.open()
	alice := &proxy.RequestInfo{Identity: &proxy.Identity{Login: "alice", Mode: proxy.ModeOAuth, UserID: 7}}
	for range 250 {
		r.log.Event(audit.Consent, &proxy.RequestInfo{Addr: "192.0.2.1"}, audit.Detail{Reason: "denied; client x"})
		r.log.Event(audit.Consent, alice, audit.Detail{Reason: "allowed; client y"})
	}
	r.log.Close()
	denied, allowed := 0, 0
	list := r.records()
	for _, rec := range of(list, audit.Consent) {
		if rec.Identity == nil {
			denied++
		} else {
			allowed++
		}
	}
	if denied > 101 || allowed != 250 {
		t.Errorf("%d denials and %d permissions", denied, allowed)
	}
}

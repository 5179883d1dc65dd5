package grant_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"aegis/proxy/oauth/grant"
)

// TestUnreadableRecordEndsNothing: a revocation ends all that it names or none, since who asked
// reads an error alone.
func TestUnreadableRecordEndsNothing(t *testing.T) {
	t.Parallel()
	for range 10 { // the order of the records is any
		w := newWorld(t)
		for range 5 {
			w.signIn()
		}
		var first grant.Grant
		for g, err := range w.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			first = g
		}
		if err := w.store.Put(t.Context(), "fam/"+strings.Repeat("m", len(first.ID)), []byte("{"), time.Hour); err != nil {
			t.Fatal(err)
		}
		rec := httptest.NewRecorder()
		grant.Control(func() *grant.Grants { return w.Grants }).
			ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/revoke", strings.NewReader(`{"login":"`+first.Login+`"}`)))
		ended := 0
		for _, e := range w.events {
			if e.Kind == grant.Revoked {
				ended++
			}
		}
		if rec.Code == http.StatusOK || ended != 0 {
			t.Errorf("%d %s, %d ended", rec.Code, rec.Body, ended)
		}
	}
}

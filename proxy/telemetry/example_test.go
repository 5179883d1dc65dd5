package telemetry_test

import (
	"bufio"
	"fmt"
	"net/http/httptest"
	"strings"

	"aegis/proxy/telemetry"
)

// What limits refuse is counted, and served for Prometheus.
func ExampleMetrics() {
	m := telemetry.NewMetrics(telemetry.Build{Version: "1.0", Catalog: "28.1.0"})
	m.Refused("address")
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "aegis_limit") {
			fmt.Println(lines.Text())
		}
	}
	// Output: aegis_limit_refusals_total{bucket="address"} 1
}

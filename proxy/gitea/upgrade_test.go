package gitea_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/gitea"
)

// TestUpgradeIsRefused: whoever answers 101 gets no call to wait for what never comes. It is
// refused at once, by every transport, and its connection is closed; gitea.timeout is too
// long to help.
func TestUpgradeIsRefused(t *testing.T) {
	t.Parallel()
	changing := write("GET", "/x") // a connection of its own
	sending := write("POST", "/x", param(proxy.InBody, "a"))
	for transport, secure := range map[string]string{"next door": "", "by proxy": "", "tls": "http/1.1", "http2": "h2"} {
		for kind, tool := range map[string]*proxy.Tool{"read": get("/x"), "change": changing, "body": sending} {
			t.Run(transport+" "+kind, func(t *testing.T) {
				t.Parallel()
				u, closed := upgrading(t, secure)
				c := client(t, u.URL, func(cfg *config.Gitea, _ *gitea.Limits) {
					switch {
					case secure != "":
						cfg.CAFile = authority(t, u.Server)
					case transport == "by proxy":
						address, err := url.Parse(u.URL)
						if err != nil {
							t.Fatal(err)
						}
						cfg.Proxy = &config.URL{URL: *address}
					}
				})
				k := call(tool, proxy.Arguments{})
				if kind == "body" {
					k = call(tool, proxy.Arguments{"a": "b"})
				}
				e := fails(t, c, k, proxy.KindUpstreamError)
				if !strings.Contains(e.Public, "gitea.url") || tool.ReadOnly == strings.Contains(e.Public, "unknown whether") {
					t.Errorf("the error says %q", e.Public)
				}
				<-closed
				if n := len(u.requests()); n != 1 {
					t.Errorf("asked %d times", n)
				}
			})
		}
	}
}

// upgrading is a server that answers 101 to everything, and says when what it answered on
// was ended by the client.
func upgrading(t *testing.T, secure string) (*upstream, <-chan struct{}) {
	t.Helper()
	closed := make(chan struct{})
	u := &upstream{}
	u.Server = httptest.NewUnstartedServer(u.record(func(w http.ResponseWriter, r *http.Request) {
		defer close(closed)
		if r.ProtoMajor == 2 {
			w.WriteHeader(http.StatusSwitchingProtocols)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nx")
		_, _ = io.Copy(io.Discard, conn)
	}))
	if secure == "" {
		u.Start()
	} else {
		u.EnableHTTP2 = secure == "h2"
		u.StartTLS()
	}
	t.Cleanup(u.Close)
	return u, closed
}

// authority writes the certificate of srv and returns the file.
func authority(t *testing.T, srv *httptest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

package audit

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"aegis/config"
	"aegis/proxy/internal/http1"
)

// writerDelivery writes lines to a stream. They come in one write, so that lines of the
// operational log, which may go to the same stream, do not get in between.
type writerDelivery struct{ w io.Writer }

func (d writerDelivery) deliver(_ context.Context, lines [][]byte) error {
	if d.w == nil {
		return nil
	}
	_, err := d.w.Write(bytes.Join(lines, nil))
	return err
}

func (writerDelivery) close() {}

// httpDelivery posts lines.
type httpDelivery struct {
	url    string
	token  config.Secret
	client *http.Client
}

// newHTTPDelivery keeps one connection open between batches.
func newHTTPDelivery(cfg config.AuditSink) *httpDelivery {
	return &httpDelivery{
		url: cfg.URL.String(), token: cfg.Token,
		client: &http.Client{
			// The receiver is the configured one, whatever the environment or an
			// answer says.
			Transport: http1.NoUpgrade{Next: &http.Transport{
				Proxy: nil, MaxIdleConns: 1, IdleConnTimeout: time.Minute,
				TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
			}},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// deliver posts a batch as newline-delimited JSON. Any answer but 2xx means that it
// comes again, also those that a receiver means for good: records wait until the
// receiver is repaired, up to the bound of the buffer.
func (d *httpDelivery) deliver(ctx context.Context, lines [][]byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, bytes.NewReader(bytes.Join(lines, nil)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("User-Agent", "aegis")
	if !d.token.IsZero() {
		req.Header.Set("Authorization", "Bearer "+d.token.Reveal())
	}
	res, err := d.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection can be used again
	// Redirects too: they are not followed, and a receiver that moved needs a new configuration.
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("the receiver answers %d", res.StatusCode)
	}
	return nil
}

func (d *httpDelivery) close() { d.client.CloseIdleConnections() }

// syslogDelivery sends each line as one message of RFC 5424: facility 13 (log
// audit), severity 6 (informational), the event as MSGID, the line as MSG.
type syslogDelivery struct {
	scheme, addr string
	host         string
	conn         net.Conn
}

// syslogPriority is facility times 8 plus severity, RFC 5424 section 6.2.1.
const syslogPriority = 13*8 + 6

func newSyslogDelivery(address string) *syslogDelivery {
	d := &syslogDelivery{host: "-"}
	if u, err := url.Parse(address); err == nil { // the configuration was checked
		d.scheme, d.addr = u.Scheme, u.Host
		if u.Scheme == "unix" { // unix:///dev/log
			d.addr = u.Path
		}
	}
	// RFC 5424 gives HOSTNAME 255 characters at most.
	if h, err := os.Hostname(); err == nil && h != "" && len(h) <= 255 {
		d.host = h
	}
	return d
}

// deliver dials when there is no connection. A write that fails ends the connection:
// how much of a message arrived is unknown, and octet counting could not go on.
func (d *syslogDelivery) deliver(ctx context.Context, lines [][]byte) error {
	if d.conn == nil {
		conn, err := d.dial(ctx)
		if err != nil {
			return err
		}
		d.conn = conn
	}
	conn := d.conn
	// The deadline that ended an earlier write must not end this one.
	if err := conn.SetWriteDeadline(time.Time{}); err != nil {
		return d.lost(err)
	}
	// A write knows no context; a deadline in the past ends one that waits.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	// UDP and Unix sockets keep the borders of messages, so that each is a write of its own;
	// streams need a frame, and take all at once.
	var packets [][]byte
	for _, line := range lines {
		packets = append(packets, d.message(bytes.TrimSuffix(line, []byte{'\n'})))
	}
	if d.scheme == "tcp" || d.scheme == "tls" {
		var stream []byte
		for _, msg := range packets {
			// Octet counting, RFC 6587 section 3.4.1 and RFC 5425 section 4.3.
			stream = append(fmt.Appendf(stream, "%d ", len(msg)), msg...)
		}
		packets = [][]byte{stream}
	}
	for _, p := range packets {
		if _, err := conn.Write(p); err != nil {
			return d.lost(err)
		}
	}
	return nil
}

// lost drops the connection; the next delivery dials, and sends the whole batch again.
func (d *syslogDelivery) lost(err error) error {
	_ = d.conn.Close() // its state is unknown after a failed write
	d.conn = nil
	return err
}

// dial connects. With tls the receiver's certificate is verified by the system's authorities;
// with the other schemes nothing shows who receives.
func (d *syslogDelivery) dial(ctx context.Context) (net.Conn, error) {
	switch d.scheme {
	case "tls":
		return (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", d.addr)
	case "unix":
		// A datagram for each message, as /dev/log takes them.
		return (&net.Dialer{}).DialContext(ctx, "unixgram", d.addr)
	}
	return (&net.Dialer{}).DialContext(ctx, d.scheme, d.addr)
}

// message returns the line as RFC 5424 frames it, with NILVALUE ("-") for what is not
// known.
func (d *syslogDelivery) message(line []byte) []byte {
	event, at := "-", "-"
	if h, err := parseHead(line); err == nil {
		// MSGID has at most 32 characters, and times six digits of a second.
		event, at = string(h.event[:min(len(h.event), 32)]), h.time.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	msg := fmt.Appendf(nil, "<%d>1 %s %s aegis %d %s - ", syslogPriority, at, d.host, os.Getpid(), event)
	return append(msg, line...)
}

func (d *syslogDelivery) close() {
	if d.conn != nil {
		_ = d.conn.Close() // nothing more is sent
	}
}

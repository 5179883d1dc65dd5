package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// target is one way to get an answer.
type target struct {
	name string
	// process is the one whose CPU time and memory count; nil: none of them is measured.
	process *process
	// fetch gets one answer and checks it.
	fetch func(w *worker, job *payload) error
}

// worker is one client with its connection, buffers and the answers that it has
// found right.
type worker struct {
	client *http.Client
	buf    bytes.Buffer
	refs   map[string][]byte
}

// transport is that of all workers: without compression, whose cost is not what is
// measured, and with idle connections for all of them, so that none is opened anew.
func transport() *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
}

func newWorker(t *http.Transport) *worker {
	return &worker{client: &http.Client{Transport: t, Timeout: time.Minute}, refs: map[string][]byte{}}
}

// do sends a request and reads the answer into the worker's buffer. An answer outside
// 2xx is an error.
func (w *worker) do(r *http.Request) (*http.Response, []byte, error) {
	res, err := w.client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	w.buf.Reset()
	if _, err := w.buf.ReadFrom(res.Body); err != nil {
		return nil, nil, err
	}
	if res.StatusCode/100 != 2 { // notifications get 202
		return nil, nil, wrong(res, w.buf.Bytes())
	}
	return res, w.buf.Bytes(), nil
}

// wrong shows the beginning of an answer, enough to see what kind of error it is.
func wrong(res *http.Response, body []byte) error {
	return fmt.Errorf("wrong answer: %s, %d bytes: %.300s", res.Status, len(body), body)
}

// plain is the target that has the answers themselves.
func plain(name string, p *process) target {
	return target{name, p, func(w *worker, job *payload) error {
		r, err := http.NewRequest(http.MethodGet, p.url+"/api/v1"+job.path, nil)
		if err != nil {
			return err
		}
		res, body, err := w.do(r)
		if err != nil {
			return err
		}
		// A proxy that answers fast and wrong must not count.
		if string(body) != job.body {
			return wrong(res, body)
		}
		return nil
	}}
}

// mcpClient asks for them by tools/call.
type mcpClient struct {
	name       string
	url, token string
	// version is that of the protocol, a date; from 2026 on a request says by itself what a
	// handshake did before.
	version   string
	stateless bool // no handshake is needed
	foreign   bool // the result's shape is not Aegis's
	gzip      bool // answers may come compressed

	mu      sync.Mutex
	shaken  bool
	session string
}

// current reports whether the version has no handshake.
func (t *mcpClient) current() bool { return t.version >= "2026" }

// send sends a message and returns its answer; name is that of the tool.
func (t *mcpClient) send(w *worker, method, name, message string) (*http.Response, []byte, error) {
	r, err := http.NewRequest(http.MethodPost, t.url, strings.NewReader(message))
	if err != nil {
		return nil, nil, err
	}
	h := r.Header
	if t.token != "" {
		h.Set("Authorization", "Bearer "+t.token)
	}
	h.Set("Content-Type", "application/json")
	// The protocol demands both; Aegis answers in JSON, others in events, see [message].
	h.Set("Accept", "application/json, text/event-stream")
	h.Set("MCP-Protocol-Version", t.version)
	if t.current() {
		h.Set("Mcp-Method", method)
		if name != "" {
			h.Set("Mcp-Name", name)
		}
	}
	if t.session != "" {
		h.Set("Mcp-Session-Id", t.session)
	}
	if t.gzip {
		h.Set("Accept-Encoding", "gzip")
	}
	return w.do(r)
}

// meta is what each request of the current protocol says of its client.
func (t *mcpClient) meta() string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + t.version +
		`","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}`
}

// shake opens a session where the protocol and the server want one.
func (t *mcpClient) shake(w *worker) error {
	// All workers share the session; the first of them opens it.
	t.mu.Lock()
	defer t.mu.Unlock()
	// Once is enough: each call would otherwise cost three requests.
	if t.shaken || t.stateless || t.current() {
		return nil
	}
	res, _, err := t.send(w, "initialize", "",
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+t.version+
			`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	if err != nil {
		return err
	}
	t.session = res.Header.Get("Mcp-Session-Id")
	_, _, err = t.send(w, "notifications/initialized", "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	t.shaken = err == nil
	return err
}

// fetch makes one call and checks its answer. A check of the whole answer takes as long
// as the call, so it is made once, and later answers are compared with that one.
func (t *mcpClient) fetch(w *worker, job *payload) error {
	if err := t.shake(w); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	params := `{"name":"` + job.tool + `","arguments":` + job.args
	if t.current() {
		params += "," + t.meta()
	}
	res, body, err := t.send(w, "tools/call", job.tool,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}}`)
	if err != nil {
		return err
	}
	// What is the same as in an answer that was found right.is right.
	same := constant(body)
	// By worker, so that they need no lock around it.
	if ref := w.refs[t.name+job.name]; ref != nil && bytes.Equal(same, ref) {
		return nil
	}
	if err := t.verify(body, job); err != nil {
		return fmt.Errorf("%w: %s, %d bytes: %.300s", err, res.Status, len(body), body)
	}
	w.refs[t.name+job.name] = bytes.Clone(same)
	return nil
}

// constant returns the part of an answer that is the same each time: the content,
// without the _meta that may come before or after it. Nil: there is none.
func constant(body []byte) []byte {
	at := bytes.Index(body, []byte(`"content":`))
	if at < 0 {
		return nil
	}
	body = body[at:]
	// The id of the request is in there, and differs each time.
	if end := bytes.LastIndex(body, []byte(`,"_meta":{`)); end > 0 {
		body = body[:end]
	}
	return body
}

// verify reads an answer as a client does, and compares all of it.
func (t *mcpClient) verify(body []byte, job *payload) error {
	body = message(body)
	var m struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
		Error json.RawMessage
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return err
	}
	// Both are fast, and neither is an answer.
	if m.Error != nil || m.Result.IsError || len(m.Result.Content) == 0 {
		return fmt.Errorf("the call failed")
	}
	text := m.Result.Content[0].Text
	if t.foreign {
		// Where the data is in an answer is up to the server: it is looked for in all of it.
		for _, c := range m.Result.Content[1:] {
			text += c.Text
		}
		if !strings.Contains(text, job.mark) {
			return fmt.Errorf("the answer is not whole: %q is missing", job.mark)
		}
		return nil
	}
	var env struct {
		Status int
		Data   json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &env); err != nil {
		return err
	}
	data := string(env.Data)
	// Text is a string in the data, and so is escaped once more.
	if job.text() {
		if err := json.Unmarshal(env.Data, &data); err != nil {
			return err
		}
	}
	// Where the bounds cut depends on line ends; that it is the beginning, and not short, is enough.
	if job.cut {
		if len(data) < 1000 || !strings.HasPrefix(job.body, data) {
			return fmt.Errorf("the data is not the beginning of Gitea's")
		}
		return nil
	}
	if env.Status != http.StatusOK || data != job.body {
		return fmt.Errorf("the data is not Gitea's")
	}
	return nil
}

// message returns the JSON-RPC message of an answer, which may be an event.
func message(body []byte) []byte {
	if bytes.HasPrefix(body, []byte("{")) {
		return body
	}
	for line := range bytes.Lines(body) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && bytes.Contains(data, []byte(`"result"`)) {
			return bytes.TrimSpace(data)
		}
	}
	return body
}

// listClient asks for the list of tools, or for the same bytes of a static
// handler.
type listClient struct {
	mcpClient
	// want is set by the first answer; a list is the same each time.
	once sync.Once
	want []byte
}

// fetch gets the list. Its bytes are not checked but for being the same: the tests of
// Aegis do that.
func (t *listClient) fetch(w *worker, _ *payload) error {
	params := "{}"
	if t.current() {
		params = "{" + t.meta() + "}"
	}
	res, body, err := t.send(w, "tools/list", "",
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":`+params+`}`)
	if err != nil {
		return err
	}
	t.once.Do(func() { t.want = bytes.Clone(body) })
	// An error is short, and is the same each time as well.
	if len(body) < 10_000 || !bytes.Equal(body, t.want) {
		return wrong(res, body)
	}
	return nil
}

package oauth

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
)

const (
	// maxForm bounds the body of a form that programs send, in bytes.
	maxForm = 16 << 10
	// maxPage bounds the body of a form that people send: it carries the request
	// of the client.
	maxPage = 64 << 10
	// maxQuery bounds a query string.
	maxQuery = 16 << 10
	// maxFields bounds the fields of a form or query.
	maxFields = 100
)

// fields are the parameters of a request. One that comes twice is an error
// wherever it is asked for (RFC 6749 section 3.1): see [fields.twice].
type fields url.Values

// get returns a parameter, "" when it is absent or empty (RFC 6749 section 3.1:
// both mean the same) or comes more than once.
func (f fields) get(name string) string {
	if v := f[name]; len(v) == 1 {
		return v[0]
	}
	return ""
}

// twice returns whether one of the names comes more than once.
func (f fields) twice(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return len(f[n]) > 1 })
}

// parseFields reads application/x-www-form-urlencoded text.
func parseFields(text string) (fields, bool) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, false
	}
	n := 0
	for _, v := range values {
		n += len(v)
	}
	return fields(values), n <= maxFields
}

// readForm reads the form in a request's body, in which none of the names may come
// twice. Parameters of the query do not count: tokens and secrets do not belong into
// addresses.
func readForm(w http.ResponseWriter, r *http.Request, limit int64, once ...string) (fields, *failure) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/x-www-form-urlencoded" {
		return nil, invalid("send the parameters as application/x-www-form-urlencoded")
	}
	body, f := readBody(w, r, limit)
	if f != nil {
		return nil, f
	}
	form, ok := parseFields(string(body))
	if !ok {
		return nil, invalid("the form cannot be read")
	}
	if form.twice(once...) {
		return nil, invalid("a parameter comes more than once")
	}
	return form, nil
}

// readBody reads a body of at most limit bytes.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *failure) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err == nil {
		return body, nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &failure{
			status: http.StatusRequestEntityTooLarge, code: codeRequest, says: "the request is too large",
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) { // what the edge makes of a body that comes too slowly
		return nil, &failure{
			status: http.StatusRequestTimeout, code: codeRequest,
			says: "the request came too slowly; send it again, faster",
		}
	}
	return nil, invalid("the request could not be read to its end; send it again")
}

package gitea

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"strings"

	"aegis/proxy"
)

// fillForm builds a multipart form, or the bare file where the tool consumes bytes. Forms
// are built in memory: their size is bounded by the request of the client, which was read
// before.
func (c *Client) fillForm(r *request, call *proxy.Call) error {
	var buf bytes.Buffer
	form := multipart.NewWriter(&buf)
	for i := range call.Wire.Body {
		f := &call.Wire.Body[i]
		if f.In != proxy.InForm && f.In != proxy.InFile {
			continue
		}
		text, ok := proxy.Scalar(f.Value)
		if !ok {
			return invalid(argument(f), "must be a string")
		}
		if f.In == proxy.InForm {
			if err := form.WriteField(f.Name, text); err != nil {
				return proxy.NewError(proxy.KindInternal, "the form cannot be built", err)
			}
			continue
		}
		data, err := c.decodeFile(argument(f), text)
		if err != nil {
			return err
		}
		// A route for bytes takes the file as the whole body.
		if call.Tool.Consumes == mediaBytes {
			r.body, r.contentType = data, mediaBytes
			return nil
		}
		if err := writeFile(form, f.Name, fileName(call), data); err != nil {
			return proxy.NewError(proxy.KindInternal, "the form cannot be built", err)
		}
	}
	if err := form.Close(); err != nil {
		return proxy.NewError(proxy.KindInternal, "the form cannot be built", err)
	}
	r.body, r.contentType = buf.Bytes(), form.FormDataContentType()
	return nil
}

// writeFile appends one file to a form. Not CreateFormFile, which escapes names in its own
// way.
func writeFile(form *multipart.Writer, field, name string, data []byte) error {
	head := textproto.MIMEHeader{}
	head.Set("Content-Disposition", multipart.FileContentDisposition(field, name))
	head.Set("Content-Type", mediaBytes)
	part, err := form.CreatePart(head)
	if err != nil {
		return err
	}
	_, err = part.Write(data)
	return err
}

// fileName is the name of an upload: the query's name's last segment, as Gitea decides by
// its extension what it accepts. A name that the client gave a path to would be a path in
// the repository or on a disk somewhere.
func fileName(call *proxy.Call) string {
	name := ""
	if f := proxy.Find(call.Wire.Query, "name"); f != nil {
		name, _ = f.Value.(string)
	}
	name = clean(name[strings.LastIndexAny(name, "/\\")+1:])
	return proxy.Shorten(cmp.Or(name, "attachment"), 255)
}

// decodeFile decodes an uploaded file after its size has been found to fit.
func (c *Client) decodeFile(name, text string) ([]byte, error) {
	if err := c.checkBase64(name, text); err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, invalid(name, notBase64)
	}
	return data, nil
}

// notBase64 is the rule for files in arguments.
const notBase64 = "must be base64 (RFC 4648 section 4, with padding)"

// checkBase64 bounds the decoded size of base64 without decoding it, and refuses plain text
// that was given where base64 is due. Models mistake one for the other; Gitea would store
// the text as garbage or refuse it without a reason.
func (c *Client) checkBase64(name, text string) error {
	// Decoded, a file would take its memory again before its size is known.
	var digits, pads int64
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '=':
			pads++
		// Go's decoder ignores line ends, and tools wrap base64 at 76 columns.
		case b == '\n' || b == '\r':
		case unreserved(b) && b != '-' && b != '_' && b != '.' && b != '~' || b == '+' || b == '/':
			if pads > 0 {
				return invalid(name, notBase64)
			}
			digits++
		default:
			return invalid(name, notBase64)
		}
	}
	if (digits+pads)%4 != 0 || pads > 2 {
		return invalid(name, notBase64)
	}
	if size := digits * 3 / 4; size > c.maxBinary {
		return tooLarge(name, size, c.maxBinary)
	}
	return nil
}

// tooLarge is the error of a file over the bound.
func tooLarge(name string, size, bound int64) error {
	return proxy.NewError(proxy.KindPayloadTooLarge, fmt.Sprintf(
		"%s: the file has %d bytes, the bound is %d bytes (results.max_binary_bytes)", name, size, bound), nil)
}

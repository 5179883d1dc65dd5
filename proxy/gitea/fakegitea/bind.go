package fakegitea

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// bind decodes the body into v and validates it by the binding tags: Required,
// AlphaDashDot, Username, GitRefName, MaxSize(n), In(a,b). Only the first problem is
// reported, as on the real server. Rules that Gitea has and no route here needs are
// left out.
func (c *call) bind(v any) error {
	if err := c.decode(v); err != nil {
		// The brackets hold the names of fields; a body that cannot be read has none.
		// The status is 422, never 400.
		return fail(http.StatusUnprocessableEntity, "[]: %v", err)
	}
	return validate(reflect.ValueOf(v).Elem())
}

// reads is a handler that decodes and validates the body before f runs. Routes that
// check something else first call bind themselves. A body that is refused so leaves the
// world untouched.
func reads[T any](f func(*call, *T) error) handler {
	return func(c *call) error {
		in := new(T)
		if err := c.bind(in); err != nil {
			return err
		}
		return f(c, in)
	}
}

// readsFor is reads for handlers of an object that the path names. The object is
// looked up first, so an unknown one is 404 whatever the body says. Gitea validates
// the body before its handlers look anything up: there a bad body is 422 either way.
func readsFor[O, T any](f func(*call, O, *T) error) func(*call, O) error {
	return func(c *call, o O) error {
		return reads(func(c *call, in *T) error { return f(c, o, in) })(c)
	}
}

// decode reads the body by its content type. Forms, which the real server takes as well,
// are not in the demo.
func (c *call) decode(v any) error {
	ct := c.r.Header.Get("Content-Type")
	switch {
	// A body without a content type is refused for POST and PUT only. For other methods
	// Gitea reads it as a form, which leaves every field empty; here it is read as
	// JSON.
	case strings.Contains(ct, "json"), ct == "" && c.r.Method != http.MethodPost && c.r.Method != http.MethodPut:
		return decodeJSON(c.body, v)
	case ct == "":
		return errors.New("Empty Content-Type")
	}
	return errors.New("Unsupported Content-Type")
}

// decodeJSON words its errors as the server's JSON library does. An empty body
// is no error; the validation that follows says what is missing.
func decodeJSON(body []byte, v any) error {
	if len(strings.TrimSpace(string(body))) == 0 {
		return nil
	}
	err := json.Unmarshal(body, v)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		// Offset counts the bytes read, the offending one included. In a body that is
		// cut off it points past the end.
		at := min(max(int(syntax.Offset)-1, 0), len(body)-1)
		return errors.New("jsontext: invalid character " + strconv.QuoteRune(rune(body[at])) +
			" at start of value after offset " + strconv.Itoa(at))
	case errors.As(err, &kind):
		field := strings.TrimPrefix(kind.Field, "issueFields.") // embedded, no part of the path
		return errors.New("json: cannot unmarshal JSON " + kind.Value + " into Go " + kind.Type.String() +
			` within "/` + strings.ReplaceAll(field, ".", "/") + `"`)
	}
	return err
}

// alphaDashDot matches what a name must not have.
var alphaDashDot = regexp.MustCompile(`[^\d\w\-_.]`)

// validate checks the binding tags of a struct, of what it embeds and of the elements
// of its lists. Fields are checked in the order of the struct, so that order decides
// which of two problems a client hears of.
func validate(v reflect.Value) error {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous && field.Type.Kind() == reflect.Struct {
			if err := validate(v.Field(i)); err != nil {
				return err
			}
		}
		// The message is the Go name of the field and that of the rule, not the JSON
		// name: a client cannot find the field by it.
		for rule := range strings.SplitSeq(field.Tag.Get("binding"), ";") {
			if rule == "" || obeys(v.Field(i), rule) {
				continue
			}
			name, _, _ := strings.Cut(rule, "(")
			if rule == "Username" {
				name = "invalid username"
			}
			return fail(http.StatusUnprocessableEntity, "[%s]: %s", field.Name, name)
		}
		if field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() == reflect.Struct {
			for k := range v.Field(i).Len() {
				if err := validate(v.Field(i).Index(k)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// obeys applies one rule. Rules other than Required pass on an empty value, so that a
// field that the body leaves out is never wrong.
func obeys(f reflect.Value, rule string) bool {
	if rule == "Required" {
		return !f.IsZero() // an empty list is a value
	}
	if f.Kind() == reflect.Pointer {
		f = f.Elem()
	}
	if !f.IsValid() || f.String() == "" {
		return true
	}
	s := f.String()
	name, args, _ := strings.Cut(strings.TrimSuffix(rule, ")"), "(")
	switch name {
	case "AlphaDashDot":
		return !alphaDashDot.MatchString(s)
	case "Username":
		return !alphaDashDot.MatchString(s) && !strings.ContainsAny(s[:1]+s[len(s)-1:], "-_.")
	case "GitRefName":
		return goodRef(s)
	case "MaxSize":
		n, err := strconv.Atoi(args)
		// Characters are counted, not bytes.
		return err == nil && utf8.RuneCountInString(s) <= n
	}
	// What is left is In.
	return slices.Contains(strings.Split(args, ","), s)
}

// upload reads the file of a multipart form, or the whole body when it is sent as
// application/octet-stream. The query's name wins over that of the form. Without a file
// in the form the answer is 500.
func (c *call) upload(field string) (name string, data []byte, err error) {
	kind, _, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if kind != "multipart/form-data" {
		return c.query.Get("name"), c.body, nil
	}
	file, header, err := c.r.FormFile(field)
	if err != nil {
		return "", nil, fail(http.StatusInternalServerError, "%v", err)
	}
	defer file.Close()
	data, err = io.ReadAll(file)
	return cmp.Or(c.query.Get("name"), header.Filename), data, err
}

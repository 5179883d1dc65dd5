package envelope

import (
	"errors"
	"fmt"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

// maxFields bounds the paths of the fields argument: each is looked for in every member.
const maxFields = 64

// maxDepth is how deep data may be nested: what is deeper is no
// [proxy.BodyJSON].
const maxDepth = 100

// ParseFields reads the paths of a fields argument; nil is no paths. The
// error is of kind invalid_arguments and does not repeat the path, which may hold
// anything that a model has read.
func ParseFields(paths []string) (*jsonscan.Selection, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	refuse := func(text string) error { return proxy.NewError(proxy.KindInvalidArguments, "fields: "+text, nil) }
	if len(paths) > maxFields {
		return nil, refuse("more than 64 paths; name fewer")
	}
	sel, err := jsonscan.NewSelection(paths...)
	switch {
	case errors.Is(err, jsonscan.ErrPathDepth):
		return nil, refuse("a path deeper than 8 names; stop at a parent")
	case err != nil:
		return nil, refuse("an empty name in a path; write paths like number, user.login or labels[].name")
	}
	return sel, nil
}

// project keeps the fields of data, and returns the paths that it does not have.
// Data that was picked while it was read passes unchanged, but for what was kept
// for stages in between.
func project(fields *jsonscan.Selection, data []byte) (kept []byte, unknown []string, err error) {
	if fields == nil {
		return data, nil, nil
	}
	kept, unknown, err = fields.Project(data, maxDepth)
	if err != nil {
		return nil, nil, defect(fmt.Errorf("data that is no JSON: %w", err))
	}
	return kept, unknown, nil
}

// noteUnknown names unknown paths in the truncation of res, since a model that gets an empty
// object for a path that it misspelled takes the data for empty.
func noteUnknown(res *proxy.Result, unknown []string) {
	if len(unknown) == 0 {
		return
	}
	if res.Truncation == nil {
		res.Truncation = &proxy.Truncation{Reason: "fields"}
	}
	res.Truncation.UnknownFields = unknown
}

package policy

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"aegis/proxy"
)

// paths decides which files the call may write. Only calls are seen here; what is pushed
// with git is for Gitea's own protected files.
func (s *session) paths() *denial {
	rules, site := &s.p.paths, s.op.site
	if !rules.any() {
		return nil
	}
	if d := s.writable(rules.name(), "files"); d != nil {
		return d
	}
	switch {
	case site.Patch:
		return deny(rules.name(), "only git can tell which files this call writes; "+
			"use the tools that name each file, or a pull request")
	case s.given(site.Commits):
		return deny(rules.name(), "a branch may not begin at any commit, as it could hold files that this endpoint "+
			"may not write; name the branch to begin at")
	}
	if d := s.each(rules.name(), site.Paths, s.file); d != nil {
		return d
	}
	if site.Pull == "merge" {
		return s.merged()
	}
	return nil
}

// merged judges the files that a merge brings in.
func (s *session) merged() *denial {
	name := s.p.paths.name()
	// What is judged now must be what is merged.
	if later, ok := s.r.values("body.merge_when_checks_succeed"); !ok || len(later) > 0 && later[0] != false {
		return deny(name, "the pull request may hold other files when it is merged later; "+
			"merge it when its checks have succeeded")
	}
	at, d := s.place("index")
	if d != nil {
		return d
	}
	files, err := s.p.lookup.Files(s.ctx, s.c, at)
	if err != nil {
		return s.unanswered(name, err)
	}
	for _, path := range files {
		if d := s.file(path); d != nil {
			return d
		}
	}
	return nil
}

// file judges a file that is written.
func (s *session) file(path string) *denial {
	if !filePath(path) {
		return deny(s.p.paths.name(), "an argument is no plain path of a file, so the rules cannot be applied")
	}
	if rule := s.p.paths.closes(path); rule != "" {
		return deny(rule, textPath)
	}
	return nil
}

const textPath = "this endpoint may not write that file"

// budgets decides how much one write may carry. They bound what an agent that went wrong
// can do in one call, so they hold for routes that no table knows, too.
func (s *session) budgets() (found *denial) {
	b := s.p.budgets
	// Values are walked through only when there is something to measure.
	if b.MaxFileBytes == 0 && b.MaxBodyBytes == 0 && b.MaxBatch == 0 {
		return nil
	}
	if b.MaxBatch > 0 {
		for _, f := range s.r.fields() {
			if n := longest(f.Value, 0); n > b.MaxBatch {
				return deny("budgets.max_batch", fmt.Sprintf("%s holds a list that is longer than "+
					"the %d items that one write may carry; split it", s.argument(f), b.MaxBatch))
			}
		}
	}
	read := s.strings(func(name, text string, isFile bool) bool {
		switch size := s.size(name, text, isFile); {
		case isFile && b.MaxFileBytes > 0 && size > int64(b.MaxFileBytes):
			found = deny("budgets.max_file_bytes",
				fmt.Sprintf("a file is larger than the %d bytes that one write may carry", int64(b.MaxFileBytes)))
		case !isFile && b.MaxBodyBytes > 0 && size > int64(b.MaxBodyBytes):
			found = deny("budgets.max_body_bytes",
				fmt.Sprintf("a text is longer than the %d bytes that one write may carry", int64(b.MaxBodyBytes)))
		}
		return found == nil
	})
	if !read {
		return deny("budgets", textUnread)
	}
	return found
}

// argument returns the name of an argument for a message. Those of a route that the
// catalog lacks are the client's own words, which no message repeats.
func (s *session) argument(f *proxy.Field) string {
	if s.c.Op == nil {
		return "an argument"
	}
	return f.Argument()
}

// size returns how many bytes a text is, once decoded.
func (s *session) size(name, text string, isFile bool) int64 {
	// Bounds are about what is stored, so base64 counts as what it decodes to.
	if !isFile || !s.op.bytes[strings.ToLower(name)] {
		return int64(len(text))
	}
	padding := strings.Count(text, "=") + strings.Count(text, "\n") + strings.Count(text, "\r")
	return int64(base64.RawStdEncoding.DecodedLen(len(text) - padding))
}

// strings calls visit for each text that the call carries, with the name of its
// member and whether it is a file's bytes, until visit returns false. Names that the
// client chose are texts too. It returns false when the arguments are nested too deep
// to be looked at.
func (s *session) strings(visit func(name, text string, isFile bool) bool) (read bool) {
	read = true
	var walk func(name string, v any, depth int) bool
	walk = func(name string, v any, depth int) bool {
		if depth > maxDepth {
			read = false
			return false
		}
		switch v := v.(type) {
		case string:
			_, isFile := s.op.bytes[strings.ToLower(name)]
			return visit(name, v, isFile)
		case []any:
			return !slices.ContainsFunc(v, func(item any) bool { return !walk(name, item, depth+1) })
		case map[string]any:
			for key, member := range v {
				if !visit("", key, false) || !walk(key, member, depth+1) {
					return false
				}
			}
		}
		return true
	}
	for _, f := range s.r.fields() {
		if s.c.Op == nil && !visit("", f.Name, false) || !walk(f.Argument(), f.Value, 0) {
			break
		}
	}
	return read
}

// longest returns the length of the longest list in a value. Beyond the depth it counts
// nothing; where texts are measured too, what is nested so deep is refused there.
func longest(v any, depth int) (n int) {
	if depth > maxDepth {
		return 0
	}
	switch v := v.(type) {
	case []any:
		n = len(v)
		for _, item := range v {
			n = max(n, longest(item, depth+1))
		}
	case map[string]any:
		for _, member := range v {
			n = max(n, longest(member, depth+1))
		}
	}
	return n
}

package fakegitea

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// filePatch is the part of a unified diff about one file.
type filePatch struct {
	from, to string // "" is /dev/null
	hunks    []patchHunk
}

// patchHunk replaces lines, beginning at a line of the old file.
type patchHunk struct {
	at  int
	old []string
	new []string
}

// applyDiffPatch commits a unified diff.
func applyDiffPatch(c *call) error {
	var in struct {
		commitInput
		Content string `json:"content" binding:"Required"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
	patches, err := parsePatch(in.Content)
	if err != nil {
		return err
	}
	branch, target, err := c.branches(in.commitInput)
	if err != nil {
		return err
	}
	head := c.repo.git.branch(branch)
	if head == nil {
		return errNotFound
	}
	files := maps.Clone(head.files)
	for _, p := range patches {
		if err := c.patchFile(files, p); err != nil {
			return err
		}
	}
	if in.Message == "" {
		in.Message = "apply-patch"
	}
	author, committer := c.signatures(in.commitInput)
	cm := c.repo.git.addCommit(files, []string{head.id}, author, committer, c.messageOf(in.commitInput, nil))
	c.moveBranch(target, cm)
	return c.created(struct {
		Content      *contentJSON    `json:"content"`
		Commit       *fileCommitJSON `json:"commit"`
		Verification verification    `json:"verification"`
	}{nil, c.fileCommit(cm), unsigned})
}

// errPatch is the refusal of a patch that cannot be read or does not apply.
func errPatch(why string) error {
	return fail(http.StatusUnprocessableEntity, "git apply error: %s", why)
}

// parsePatch reads a unified diff.
func parsePatch(text string) ([]filePatch, error) {
	var out []filePatch
	rows := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(rows); i++ {
		old, ok := strings.CutPrefix(rows[i], "--- ")
		if !ok || i+1 == len(rows) || !strings.HasPrefix(rows[i+1], "+++ ") {
			continue
		}
		p := filePatch{from: patchName(old), to: patchName(rows[i+1][4:])}
		for i++; i+1 < len(rows) && strings.HasPrefix(rows[i+1], "@@ "); {
			h, n, err := parseHunk(rows[i+1:])
			if err != nil {
				return nil, err
			}
			p.hunks = append(p.hunks, h)
			i += n
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, errPatch("no valid patches in input")
	}
	return out, nil
}

// patchName is the path of a file line.
func patchName(s string) string {
	s, _, _ = strings.Cut(s, "\t")
	if s == "/dev/null" {
		return ""
	}
	_, name, _ := strings.Cut(s, "/") // a/ or b/
	return cleanPath(name)
}

// parseHunk reads a hunk and says how many rows it has. Its header tells where
// it ends: a removed line may look like the head of the next file.
func parseHunk(rows []string) (patchHunk, int, error) {
	head := strings.Fields(rows[0])
	if len(head) < 3 {
		return patchHunk{}, 0, errPatch("corrupt patch")
	}
	at, olds, okOld := parseSpan(head[1], "-")
	_, news, okNew := parseSpan(head[2], "+")
	if !okOld || !okNew {
		return patchHunk{}, 0, errPatch("corrupt patch")
	}
	h, n := patchHunk{at: max(at-1, 0)}, 1
	for ; len(h.old) < olds || len(h.new) < news; n++ {
		if n == len(rows) || rows[n] == "" {
			return patchHunk{}, 0, errPatch("corrupt patch")
		}
		text := rows[n][1:]
		switch rows[n][0] {
		case ' ':
			h.old, h.new = append(h.old, text), append(h.new, text)
		case '-':
			h.old = append(h.old, text)
		case '+':
			h.new = append(h.new, text)
		case '\\':
			h.unend(rows[n-1])
		}
	}
	for n < len(rows) && strings.HasPrefix(rows[n], "\\") {
		h.unend(rows[n-1])
		n++
	}
	return h, n, nil
}

// unend takes the newline from the row before, which is the last of its file.
func (h *patchHunk) unend(row string) {
	mark := func(side []string) {
		if len(side) > 0 {
			side[len(side)-1] += noNewline
		}
	}
	if row[0] != '+' {
		mark(h.old)
	}
	if row[0] != '-' {
		mark(h.new)
	}
}

// parseSpan reads "-1,3" or "+1" of a hunk's header.
func parseSpan(s, sign string) (line, count int, ok bool) {
	first, rest, several := strings.Cut(strings.TrimPrefix(s, sign), ",")
	line, err := strconv.Atoi(first)
	if err != nil || !several {
		return line, 1, err == nil
	}
	count, err = strconv.Atoi(rest)
	return line, count, err == nil
}

// fits says whether a line of a file is the one of a hunk; a hunk may pass over
// a missing last newline.
func fits(have, want string) bool { return have == want || have == want+noNewline }

// patchFile applies the hunks to a file of the snapshot; they have to fit
// exactly.
func (c *call) patchFile(files map[string]string, p filePatch) error {
	if gitPath(p.from) || gitPath(p.to) || p.from == "" && p.to == "" {
		return errPatch("invalid path")
	}
	if p.from != "" && files[p.from] == "" {
		return errPatch(p.from + ": No such file or directory")
	}
	have := lines(c.repo.git.blobs[files[p.from]])
	shift := 0
	for _, h := range p.hunks {
		at := h.at + shift
		if at+len(h.old) > len(have) || !slices.EqualFunc(have[at:at+len(h.old)], h.old, fits) {
			return errPatch("patch does not apply")
		}
		have = slices.Concat(have[:at], h.new, have[at+len(h.old):])
		shift += len(h.new) - len(h.old)
	}
	text, ok := unlines(have)
	if !ok {
		return errPatch("patch does not apply")
	}
	delete(files, p.from)
	if p.to != "" {
		files[p.to] = c.repo.git.addBlob([]byte(text))
	}
	return nil
}

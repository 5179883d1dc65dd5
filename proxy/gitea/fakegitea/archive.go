package fakegitea

import (
	"archive/zip"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// getArchive answers the tree of a reference as a zip archive; the other formats are
// not in the demo. The whole archive is built in memory, like every answer.
func getArchive(c *call) error {
	ref, isZip := strings.CutSuffix(c.params["archive"], ".zip")
	if !isZip {
		return notInDemo(c)
	}
	// The suffix was cut off first, so a branch whose name ends in .zip needs a second
	// one.
	cm := c.repo.git.resolve(ref)
	if cm == nil {
		return fail(http.StatusNotFound, "unrecognized repository reference: %s", ref)
	}
	h := c.out.header
	h.Set("Content-Type", "application/octet-stream")
	// Slashes of the reference cannot stand in a file name; Gitea makes them hyphens.
	name := c.repo.Name + "-" + strings.ReplaceAll(ref, "/", "-") + ".zip"
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	// The link leads to the same archive by commit id, which never changes, while a
	// branch moves.
	h.Set("Link", fmt.Sprintf(`<%s?rev=%s>; rel="immutable"`, c.api(c.repo, "archive", cm.id+".zip"), cm.id))
	z := zip.NewWriter(c.out)
	if err := z.SetComment(cm.id); err != nil { // as git does
		return err
	}
	// Sorted names and the commit's own date make the same bytes for the same commit
	// every time. Everything lies in a folder, which is the default of
	// PREFIX_ARCHIVE_FILES.
	for _, p := range slices.Sorted(maps.Keys(cm.files)) {
		header := &zip.FileHeader{Name: c.repo.Name + "/" + p, Method: zip.Deflate, Modified: cm.committer.When}
		w, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := w.Write(c.repo.git.blobs[cm.files[p]]); err != nil {
			return err
		}
	}
	return z.Close()
}

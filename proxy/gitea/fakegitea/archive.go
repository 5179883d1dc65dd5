package fakegitea

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// handleArchives registers downloads of a whole tree.
func handleArchives(t table) {
	const p = "/repos/{owner}/{repo}"
	t.on("GET "+p+"/archive/{archive}", func(c *call) error {
		for _, ext := range []string{".zip", ".tar.gz", ".bundle"} {
			if ref, ok := strings.CutSuffix(c.params["archive"], ext); ok {
				return c.archiveOf(ref, ext)
			}
		}
		return fail(http.StatusBadRequest, "unknown format: %s", c.params["archive"])
	})
	t.on("GET "+p+"/zipball/{ref}", func(c *call) error { return c.archiveOf(c.params["ref"], ".zip") })
	t.on("GET "+p+"/tarball/{ref}", func(c *call) error { return c.archiveOf(c.params["ref"], ".tar.gz") })
}

// archiveOf writes the tree of a reference as an archive.
func (c *call) archiveOf(ref, ext string) error {
	cm := c.repo.git.resolve(ref)
	if cm == nil {
		return fail(http.StatusNotFound, "unrecognized repository reference: %s", ref)
	}
	h := c.out.header
	h.Set("Content-Type", "application/octet-stream")
	name := c.repo.Name + "-" + strings.ReplaceAll(ref, "/", "-") + ext
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	h.Set("Link", fmt.Sprintf(`<%s?rev=%s>; rel="immutable"`, c.api(c.repo, "archive", cm.id+ext), cm.id))
	switch ext {
	case ".zip":
		return c.writeZip(cm)
	case ".tar.gz":
		return c.writeTar(cm)
	}
	_, err := fmt.Fprintf(c.out, "# v2 git bundle\n%s refs/heads/%s\n\n", cm.id, ref)
	return err
}

// paths lists the files of a commit, sorted, below the repository's name.
func (c *call) paths(cm *commit, f func(name string, data []byte) error) error {
	for _, p := range slices.Sorted(maps.Keys(cm.files)) {
		if err := f(c.repo.Name+"/"+p, c.repo.git.blobs[cm.files[p]]); err != nil {
			return err
		}
	}
	return nil
}

// writeZip writes a zip archive with the commit id as its comment, as git does.
func (c *call) writeZip(cm *commit) error {
	z := zip.NewWriter(c.out)
	if err := z.SetComment(cm.id); err != nil {
		return err
	}
	err := c.paths(cm, func(name string, data []byte) error {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: cm.committer.When})
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	return z.Close()
}

// writeTar writes a compressed tar archive.
func (c *call) writeTar(cm *commit) error {
	g := gzip.NewWriter(c.out)
	t := tar.NewWriter(g)
	err := c.paths(cm, func(name string, data []byte) error {
		head := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), ModTime: cm.committer.When}
		if err := t.WriteHeader(head); err != nil {
			return err
		}
		_, err := t.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	for _, w := range []io.Closer{t, g} {
		if err := w.Close(); err != nil {
			return err
		}
	}
	return nil
}

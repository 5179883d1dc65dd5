package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name string // with slashes
	data []byte
	exec bool
}

// pack writes a platform's archive: a zip file for Windows, a compressed tar file for
// the others. Files have no owner and the time of the commit, so that archives are
// reproducible. A folder with the version inside, so that unpacking two releases does
// not mix them.
func (r *release) pack(t target, extras []entry) error {
	program, err := os.ReadFile(r.binary(t))
	if err != nil {
		return err
	}
	list := append([]entry{{name: filepath.Base(r.binary(t)), data: program, exec: true}}, extras...)
	// Windows opens zip files without a further program, and the others have tar.
	ending, write := ".tar.gz", tarball
	if t.os == "windows" {
		ending, write = ".zip", zipball
	}
	f, err := os.Create(filepath.Join(r.out, r.name(t)+ending))
	if err != nil {
		return err
	}
	return errors.Join(write(f, r.name(t)+"/", list, r.when), f.Close())
}

// mode is not the file's own: a checkout has the modes of its umask. The bytes of an
// archive would depend on that.
func (e entry) mode() int64 {
	if e.exec {
		return 0o755
	}
	return 0o644
}

// tarball writes a compressed tar file. USTAR headers have no access times, and owners
// stay unset.
func tarball(w io.Writer, dir string, list []entry, when time.Time) error {
	gz, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(gz)
	for _, e := range list {
		head := &tar.Header{Typeflag: tar.TypeReg, Name: dir + e.name, Mode: e.mode(), Size: int64(len(e.data)),
			ModTime: when, Format: tar.FormatUSTAR}
		if err := tw.WriteHeader(head); err != nil {
			return err
		}
		if _, err := tw.Write(e.data); err != nil {
			return err
		}
	}
	return errors.Join(tw.Close(), gz.Close())
}

// compressed returns data as a gzip file without name and time. With a name or a time
// in the header, two builds would differ.
func compressed(data []byte) ([]byte, error) {
	var b bytes.Buffer
	gz, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = gz.Write(data)
	err = errors.Join(err, gz.Close()) // which writes the end
	return b.Bytes(), err
}

// zipball writes a zip file. The format has local times, so when must be in UTC for the
// same bytes everywhere.
func zipball(w io.Writer, dir string, list []entry, when time.Time) error {
	zw := zip.NewWriter(w)
	for _, e := range list {
		head := &zip.FileHeader{Name: dir + e.name, Method: zip.Deflate, Modified: when}
		head.SetMode(os.FileMode(e.mode()))
		fw, err := zw.CreateHeader(head)
		if err != nil {
			return err
		}
		if _, err := fw.Write(e.data); err != nil {
			return err
		}
	}
	return zw.Close()
}

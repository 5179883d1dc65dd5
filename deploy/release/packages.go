package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// nfpm makes packages; it needs neither dpkg nor rpm. It is run at a version that is
// written down, and is no dependency of the module: it would bring a hundred others.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2"

// packages makes the packages of a Linux platform, as deploy/package/nfpm.yaml says.
func (r *release) packages(ctx context.Context, t target) error {
	dist, err := filepath.Abs(r.out)
	if err != nil {
		return err
	}
	for _, kind := range []string{"deb", "rpm"} {
		file := filepath.Join(dist, r.name(t)+"."+kind)
		cmd := exec.CommandContext(ctx, "go", "run", nfpm, "package", "-f", "deploy/package/nfpm.yaml", "-p", kind,
			"-t", file)
		cmd.Dir = r.root
		// The file of nfpm takes these; its times come from SOURCE_DATE_EPOCH.
		cmd.Env = append(os.Environ(), "VERSION="+r.version, "ARCH="+t.arch, "DIST="+dist,
			fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.when.Unix()))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("packaging %s for %s: %w\n%s", kind, t, err, out)
		}
		fmt.Fprintf(r.log, "%s\n", filepath.Base(file))
	}
	return nil
}

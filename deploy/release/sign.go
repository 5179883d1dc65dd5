package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// signer is a program that signs SHA256SUMS, which vouches for all other files. Other
// files need no signature of their own: each has its sum in there.
type signer struct {
	variable string // of the environment, with the key
	args     func(file, key string) []string
	makes    string // ending of the signature
}

// signers in the order in which they run. Each makes a file of its own, so that all of
// them may sign.
var signers = []signer{
	{"AEGIS_MINISIGN_KEY", func(file, key string) []string {
		return []string{"minisign", "-S", "-s", key, "-m", file, "-x", file + ".minisig"}
	}, ".minisig"},
	{"AEGIS_COSIGN_KEY", func(file, key string) []string {
		return []string{"cosign", "sign-blob", "--yes", "--key", key, "--output-signature", file + ".sig", file}
	}, ".sig"},
	{"AEGIS_GPG_KEY", func(file, key string) []string {
		return []string{"gpg", "--batch", "--yes", "--armor", "--detach-sign", "--local-user", key, "--output",
			file + ".asc", file}
	}, ".asc"},
}

// sign signs with each key that the environment names, and says so when there is none.
// A release without a key is still one, for people who build their own.
func (r *release) sign(ctx context.Context) error {
	file, signed := filepath.Join(r.out, "SHA256SUMS"), false
	for _, s := range signers {
		key := os.Getenv(s.variable)
		if key == "" {
			continue
		}
		args := s.args(file, key)
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, r.log, os.Stderr // it may ask for a password
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s could not sign; the checksums are there, %s is not: %w", args[0],
				filepath.Base(file)+s.makes, err)
		}
		fmt.Fprintf(r.log, "signed: %s%s\n", file, s.makes)
		signed = true
	}
	if !signed {
		fmt.Fprintln(r.log, "unsigned: set AEGIS_MINISIGN_KEY, AEGIS_COSIGN_KEY or AEGIS_GPG_KEY to sign SHA256SUMS")
	}
	return nil
}

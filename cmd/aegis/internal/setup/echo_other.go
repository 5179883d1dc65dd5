//go:build !linux && !darwin

package setup

import (
	"errors"
	"os"
)

// hideInput is not to be had here; what is typed is seen.
func hideInput(*os.File) (func(), error) { return nil, errors.ErrUnsupported }

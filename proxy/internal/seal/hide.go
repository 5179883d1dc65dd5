package seal

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "<key ring>"

// Format hides the keys from every verb of fmt.
func (r Ring) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// String hides the keys.
func (r Ring) String() string { return redacted }

// GoString hides the keys.
func (r Ring) GoString() string { return redacted }

// MarshalText hides the keys from JSON, YAML and text encoders.
func (r Ring) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue hides the keys from slog.
func (r Ring) LogValue() slog.Value { return slog.StringValue(redacted) }

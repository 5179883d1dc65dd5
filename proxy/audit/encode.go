package audit

import (
	"encoding/json"
	"errors"
	"fmt"
)

// encode returns the members of r after prev, as {"event":…}. The others are
// appendLine's, which knows the place in the chain. Calls wait for two records
// each; writing them by hand instead was tried and saves two microseconds a record,
// one or two parts in a hundred of a call.
func encode(r *Record) ([]byte, error) {
	type none *struct{}
	body, err := json.Marshal(struct {
		*Record
		// By Go's rules for embedded fields these hide the record's.
		Seq  none `json:"seq,omitempty"`
		Time none `json:"time,omitempty"`
		Prev none `json:"prev,omitempty"`
		Hash none `json:"hash,omitempty"`
	}{Record: r})
	if err != nil {
		return nil, fmt.Errorf("audit record: %w", err)
	}
	// The rest of the line has some 250 bytes; [Verify] takes no longer line than maxLine.
	if len(body) > maxLine-512 {
		return nil, errors.New("audit record: larger than 64 KiB")
	}
	return body, nil
}

package doctor

import (
	"context"
	"slices"
)

// outcome is a row of a check's table: a fault, and what is reported when it is there.
// All rows are evaluated before the first is reported, so none may depend on an earlier
// one being false.
type outcome struct {
	found   bool
	status  Status
	message string
	fix     string
}

// passes reports the first fault of a check that was found, and is true when there is
// none. Rows stand in the order of causes: a later one may follow from an earlier.
func (x *examination) passes(check string, faults []outcome) bool {
	i := slices.IndexFunc(faults, func(o outcome) bool { return o.found })
	if i >= 0 {
		x.add(faults[i].status, check, faults[i].message, faults[i].fix)
	}
	return i < 0
}

// judge is passes, and reports ok, unless it is "", when no fault was found.
func (x *examination) judge(check, ok string, faults []outcome) {
	if x.passes(check, faults) && ok != "" {
		x.add(OK, check, ok, "")
	}
}

// seeProxyLog is what to do about a request that got no answer.
const seeProxyLog = "see the proxy's log"

// reply sends a request whose answer a check needs. Where there is none, it reports
// that, with message before the cause, and returns nil.
func (x *examination) reply(ctx context.Context, check, message, fix string, a ask) *answer {
	got, err := x.do(ctx, a)
	if err != nil {
		x.add(Failure, check, message+err.Error(), fix)
		return nil
	}
	return got
}

package doctor

import "time"

// Held sets how long a request may wait for its answer while its body is not whole.
func (o *Options) Held(d time.Duration) { o.held = d }

// Quiet sets how long the rest of an event stream must stay away after its beginning.
func (o *Options) Quiet(d time.Duration) { o.quiet = d }

package jsonscan

// Check is [CheckValues] for any number of values.
func Check(data []byte, maxDepth int) error { return CheckValues(data, maxDepth, 1<<62) }

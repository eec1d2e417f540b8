package plan

import "testing"

// Bare is a plan without where it is from.
func Bare(p Plan) Plan {
	p.from = source{}
	return p
}

// CountExpansions counts how often plans are expanded during a test.
func CountExpansions(t *testing.T) *int {
	was, n := expanded, new(int)
	expanded = func() { *n++ }
	t.Cleanup(func() { expanded = was })
	return n
}

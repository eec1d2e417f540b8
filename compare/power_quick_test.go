//go:build !race && !slow

package compare_test

// Simulated records, of each kind.
const families, trials, quick = 60, 100, true

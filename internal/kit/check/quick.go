//go:build !slow

package check

// Slow tells that tests are thorough, which takes minutes.
const Slow = false

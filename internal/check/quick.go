//go:build !slow

package check

const Slow = false

//go:build slow

package browser

const thorough = true

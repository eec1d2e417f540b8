//go:build !slow

package browser

// thorough asks for what is covered by something quicker too.
const thorough = false

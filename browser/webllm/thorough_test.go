//go:build !slow

package webllm

// thorough asks for what is covered by something quicker too.
const thorough = false

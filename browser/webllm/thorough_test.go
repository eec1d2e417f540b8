//go:build !slow

package webllm

// thorough includes what a quicker test covers too.
const thorough = false

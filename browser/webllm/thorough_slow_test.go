//go:build slow

package webllm

const thorough = true

package llamacpp

import (
	"fmt"
	"strings"
)

// ascii is printable text: every token is a whole character.
func ascii() []byte {
	var out []byte
	for b := byte(' '); b <= '~'; b++ {
		out = append(out, b)
	}
	return out
}

func pids(list []int) string { return strings.Trim(fmt.Sprint(list), "[]") }

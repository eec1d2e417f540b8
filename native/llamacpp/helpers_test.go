package llamacpp

// ascii is printable text: every token is a whole character.
func ascii() []byte {
	var out []byte
	for b := byte(' '); b <= '~'; b++ {
		out = append(out, b)
	}
	return out
}

package tiny

// The model works on codewords. A word is nine bits: three elements (a, b, c) of the field of eight. Its codeword has
// 64 signs, one for each pair (y, z) of field elements: the trace of a·y + b·z + c·y·z. The model uses three
// properties:
//
//   - two different codewords agree in about half of their signs: their product sums to at most 8, and that of a
//     codeword with itself to 64, so the right word stands out among the 511 others;
//   - the product of two codewords is the codeword of their exclusive or;
//   - scaling y and z permutes the signs, and maps each codeword to another one.

const (
	wordSigns = 64
	words     = 512
)

// sign returns the sign at a place of a word's codeword.
func sign(word, place int) float32 {
	a, b, c := word&7, word>>3&7, word>>6
	y, z := place&7, place>>3
	return float32(1 - 2*trace(times(a, y)^times(b, z)^times(c, times(y, z))))
}

// moved returns the place after scaling by l and m.
func moved(place, l, m int) int { return times(place&7, l) | times(place>>3, m)<<3 }

// times multiplies in the field of eight: polynomials modulo x³+x+1.
func times(a, b int) int {
	p := 0
	for i := range 3 {
		if b>>i&1 == 1 {
			p ^= a << i
		}
	}
	for i := 4; i >= 3; i-- {
		if p>>i&1 == 1 {
			p ^= 0b1011 << (i - 3)
		}
	}
	return p
}

// trace maps the field of eight to a bit.
func trace(a int) int {
	square := times(a, a)
	return (a ^ square ^ times(square, square)) & 1
}

package byhand

import (
	"strings"

	qr "github.com/piglig/go-qr"
)

// code is a text as a QR code for a terminal, two rows a line, with the light border that readers need. Blocks are the
// light parts, because terminals are dark; readers take the inverse, too.
func code(text string) string {
	c, err := qr.EncodeText(text, qr.Low)
	if err != nil {
		return "" // too long; the text stands beside it
	}
	const border = 2
	light := func(x, y int) bool { return y < c.Size()+border && !c.Module(x, y) }
	var b strings.Builder
	for y := -border; y < c.Size()+border; y += 2 {
		for x := -border; x < c.Size()+border; x++ {
			switch top, bottom := light(x, y), light(x, y+1); {
			case top && bottom:
				b.WriteRune('█')
			case top:
				b.WriteRune('▀')
			case bottom:
				b.WriteRune('▄')
			default:
				b.WriteByte(' ')
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

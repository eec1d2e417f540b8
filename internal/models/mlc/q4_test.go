package mlc

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models/gguf"
)

// sameQ4 checks that a Q4_0 block and MLC's form of it have the same values and become each other again.
func sameQ4(t *testing.T, block []byte) {
	t.Helper()
	packed := make([]byte, packedQ4)
	scale := PackQ4(packed, block)
	want := make([]float32, 32)
	check.Err(t, gguf.Dequantise(gguf.Q4_0, block, want))
	for i, w := range want {
		word := binary.LittleEndian.Uint32(packed[i/8*4:]) // as MLC reads it
		got := float32(int(word>>(i%8*4)&15)-7) * gguf.Half(scale)
		if got != w && !(math.IsNaN(float64(got)) && math.IsNaN(float64(w))) {
			t.Errorf("block %x: value %d is %g, want %g", block, i, got, w)
		}
	}
	back := make([]byte, blockQ4_0)
	if UnpackQ4(back, packed, scale); !bytes.Equal(back, block) {
		t.Errorf("block %x comes back as %x", block, back)
	}
	again := make([]byte, packedQ4)
	if s := PackQ4(again, back); s != scale || !bytes.Equal(again, packed) {
		t.Errorf("packed %x comes back as %x, scale %x as %x", packed, again, scale, s)
	}
}

func TestQ4IsQ4_0(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		block := make([]byte, blockQ4_0)
		for i := range block {
			block[i] = byte(r.Uint32())
			if i >= 2 && r.IntN(2) == 0 { // blocks without a number 0 are rare otherwise
				block[i] |= 0x11
			}
		}
		sameQ4(t, block)
	}
}

func FuzzQ4(f *testing.F) {
	f.Add(make([]byte, blockQ4_0))
	f.Add(bytes.Repeat([]byte{0xff}, blockQ4_0))
	f.Add(append([]byte{0, 0x3c}, bytes.Repeat([]byte{0x1f}, 16)...))
	f.Fuzz(func(t *testing.T, block []byte) {
		if len(block) == blockQ4_0 {
			sameQ4(t, block)
		}
	})
}

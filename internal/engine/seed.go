package engine

import (
	"crypto/rand"
	"encoding/binary"
)

// NewSeed returns a random seed in the range that every engine takes; 0 if nothing is sampled.
func (r Request) NewSeed() uint32 {
	if r.Temperature <= 0 {
		return 0
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.LittleEndian.Uint32(b[:]) >> 1
}

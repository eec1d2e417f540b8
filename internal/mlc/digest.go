package mlc

import (
	"crypto/md5"
	"encoding/hex"
)

// digest is an MD5 that is computed beside the writing, which takes about as long: one weight may be a whole shard, and
// that shard most of a package.
type digest struct {
	pieces, free chan []byte
	sum          chan string
}

// newDigest makes a digest, which must be closed. Two pieces of memory go round in it: one is filled while the other is
// summed.
func newDigest() *digest {
	d := &digest{pieces: make(chan []byte, 2), free: make(chan []byte, 2), sum: make(chan string)}
	d.free <- nil
	d.free <- nil
	go func() {
		sum := md5.New()
		for piece := range d.pieces {
			if piece == nil { // the end of a text
				d.sum <- hex.EncodeToString(sum.Sum(nil))
				sum.Reset()
				continue
			}
			sum.Write(piece)
			d.free <- piece[:0]
		}
	}()
	return d
}

// room gives memory for a piece, which must be written next.
func (d *digest) room() []byte { return <-d.free }

// write adds a piece, of which the caller may read on until it has asked for room again.
func (d *digest) write(piece []byte) {
	if piece == nil {
		piece = []byte{}
	}
	d.pieces <- piece
}

// end gives the sum of what was written since the last end.
func (d *digest) end() string {
	d.pieces <- nil
	return <-d.sum
}

func (d *digest) close() { close(d.pieces) }

package truth

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// order is what the child is told to do, a line each; it answers each with a line.
type order struct {
	Take     string `json:"take,omitempty"` // how, in words of the kinds below
	Bytes    int64  `json:"bytes,omitempty"`
	GiveBack bool   `json:"give_back,omitempty"`
}

type answer struct {
	Error string `json:"error,omitempty"`
}

// How a child takes memory.
const (
	anonymous = "anonymous" // of its own, as malloc has the system give large pieces
	mapped    = "mapped"    // a file's, read
	shared    = "shared"    // of a file that has no name, written
	untouched = "-untouched"
)

// The child's files, which it inherits.
const (
	mappedFile = 3
	sharedFile = 4
)

// Allocate is the child that takes memory: it obeys orders until there are none, and gives everything back by ending.
// It must have been started by InProcesses, whose files it inherits.
func Allocate(orders io.Reader, answers io.Writer) error {
	var h held
	defer func() { _ = h.giveBack() }() // the process ends
	lines := bufio.NewScanner(orders)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return fmt.Errorf("reading an order: %w", err)
		}
		var err error
		switch {
		case o.GiveBack:
			err = h.giveBack()
		case o.Bytes <= 0:
			err = errors.New("no size")
		default:
			err = h.take(o.Take, int(o.Bytes))
		}
		var a answer
		if err != nil {
			a.Error = err.Error()
		}
		if err := json.NewEncoder(answers).Encode(a); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
	return lines.Err()
}

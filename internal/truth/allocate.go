package truth

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

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

// What the child is told to do, a line each; it answers each with a line: done, or what went wrong.
const (
	giveBack = "give back"
	done     = "done"
)

// Allocate is the child that takes memory: it obeys orders until there are none, and gives everything back by ending.
// It must have been started by InProcesses, whose files it inherits.
func Allocate(orders io.Reader, answers io.Writer) error {
	var h held
	defer func() { _ = h.giveBack() }() // the process ends
	lines := bufio.NewScanner(orders)
	for lines.Scan() {
		answer := done
		if err := h.obey(lines.Text()); err != nil {
			answer = err.Error()
		}
		if _, err := fmt.Fprintln(answers, answer); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
	return lines.Err()
}

// obey carries out an order: giveBack, or a kind of memory and how many bytes of it to take.
func (h *held) obey(order string) error {
	if order == giveBack {
		return h.giveBack()
	}
	how, size, _ := strings.Cut(order, " ")
	bytes, err := strconv.Atoi(size)
	if err != nil {
		return fmt.Errorf("reading an order: %w", err)
	}
	return h.take(how, bytes)
}

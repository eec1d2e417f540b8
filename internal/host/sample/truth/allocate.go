package truth

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// How a child allocates memory.
const (
	anonymous = "anonymous" // anonymous pages, as malloc uses for large blocks
	mapped    = "mapped"    // a mapped file, read
	shared    = "shared"    // a file without a name, written
	untouched = "-untouched"
)

// File descriptors that the child inherits.
const (
	mappedFile = 3
	sharedFile = 4
)

// The child reads orders, a line each, and answers each with done or an error.
const (
	giveBack = "give back"
	done     = "done"
)

// Allocate is the child process: it follows orders until the input ends. It must be started by InProcesses.
func Allocate(orders io.Reader, answers io.Writer) error {
	var h held
	defer h.giveBack()
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

// obey executes an order: giveBack, or a kind of memory and a number of bytes.
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

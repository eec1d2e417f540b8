package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Patience is how long a program may take to say what it is: a first start from a slow disk takes seconds.
const Patience = 30 * time.Second

// MostSaid is how much of what a program says is kept, of its end: the linker's list of a desktop's libraries has 200
// KB.
const MostSaid = 1 << 20

// Says runs a program that says something and ends, and gives what it said.
func Says(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	cmd := exec.Command(path, args...)
	// a Go would fetch the one that the project we are called in wants
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local")
	tail := &Tail{Max: MostSaid}
	cmd.Stdout, cmd.Stderr = tail, tail
	p, err := StartGuarded(ctx, cmd)
	if err != nil {
		return "", err
	}
	defer p.Kill() // and what it may have started
	<-p.Done()
	words := strings.Join(tail.Lines(MostSaid), "\n")
	switch {
	case ctx.Err() != nil && p.Err() != nil:
		return words, fmt.Errorf("no answer within %s", Patience)
	// what it left behind keeps its output open, and goes
	case p.Err() != nil && !errors.Is(p.Err(), exec.ErrWaitDelay):
		return words, fmt.Errorf("%w: %s", p.Err(), strings.Join(strings.Fields(LastLine(words)), " "))
	}
	return words, nil
}

// FirstLine is the first that says something; wrapper scripts may complain before the program speaks.
func FirstLine(words string) string {
	for line := range strings.Lines(words) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, ": line ") &&
			!strings.Contains(line, "unexpected operator") {
			return line
		}
	}
	return ""
}

// LastLine is the last that says something.
func LastLine(words string) string {
	lines := strings.Split(strings.TrimSpace(words), "\n")
	return lines[len(lines)-1]
}

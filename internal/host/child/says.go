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

// Patience is the time limit for programs that print something about themselves. A slow disk takes seconds.
const Patience = 30 * time.Second

// MostSaid limits the kept output, of which the end counts. The linker's list of a desktop's libraries has 200 KB.
const MostSaid = 1 << 20

// NoAnswer is the error of a program that did not end within Patience: on a busy machine, a later call may succeed.
type NoAnswer struct{}

func (NoAnswer) Error() string { return fmt.Sprintf("no answer within %s", Patience) }

// Says runs a program that prints something and ends, and returns the output.
func Says(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	cmd := exec.Command(path, args...)
	// otherwise a Go would download the version that the current project wants
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local")
	tail := &Tail{Max: MostSaid}
	cmd.Stdout, cmd.Stderr = tail, tail
	p, err := StartGuarded(ctx, cmd)
	if err != nil {
		return "", err
	}
	defer p.Kill() // and what it started
	<-p.Done()
	words := strings.Join(tail.Lines(MostSaid), "\n")
	switch {
	case ctx.Err() != nil && p.Err() != nil:
		return words, NoAnswer{}
	// leftover children keep the output open, until they are killed
	case p.Err() != nil && !errors.Is(p.Err(), exec.ErrWaitDelay):
		return words, fmt.Errorf("%w: %s", p.Err(), strings.Join(strings.Fields(LastLine(words)), " "))
	}
	return words, nil
}

// FirstLine returns the first non-empty line, without complaints of a wrapper script's shell.
func FirstLine(words string) string {
	for line := range strings.Lines(words) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, ": line ") &&
			!strings.Contains(line, "unexpected operator") {
			return line
		}
	}
	return ""
}

// LastLine returns the last non-empty line.
func LastLine(words string) string {
	lines := strings.Split(strings.TrimSpace(words), "\n")
	return lines[len(lines)-1]
}

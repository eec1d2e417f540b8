package modellib

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"llmparity/internal/child"
)

// The compiler's own exit codes for what `make setup` puts right.
const (
	exitNoPackages = 3
	exitNoEmcc     = 4
)

// run runs the compiler, hands its progress on, and turns its end into an error. What it wrote is kept at log when it
// fails.
func run(ctx context.Context, cmd *exec.Cmd, log string, say func(string)) error {
	out := &output{say: say}
	cmd.Stdout, cmd.Stderr = out, out // one writer: the two are never written at once
	// emcc starts compilers, which would go on if we were killed.
	p, err := child.StartLeader(ctx, cmd)
	if err != nil {
		return noPython("%v", err)
	}
	<-p.Done()
	p.Kill() // its group: a compiler that Python left behind
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.Err() == nil {
		_ = os.Remove(log) // of an earlier failure, usually not there
		return nil
	}
	reason := out.reason()
	if exit, ok := errors.AsType[*exec.ExitError](p.Err()); ok {
		switch exit.ExitCode() {
		case exitNoPackages:
			return noPython("%s (%s)", reason, cmd.Path)
		case exitNoEmcc:
			return noEmcc("%s", reason)
		}
	}
	if reason == "" {
		reason = p.Err().Error()
	}
	if err := os.WriteFile(log, out.all.Bytes(), 0o644); err != nil {
		return fmt.Errorf("%s (its log could not be kept: %v)", reason, err)
	}
	return fmt.Errorf("%s (log: %s)", reason, log)
}

// output keeps what the compiler writes and passes its steps on as they come.
type output struct {
	say  func(string)
	all  bytes.Buffer
	line []byte
}

func (o *output) Write(b []byte) (int, error) {
	o.all.Write(b)
	o.line = append(o.line, b...)
	for {
		line, rest, found := bytes.Cut(o.line, []byte("\n"))
		if !found {
			return len(b), nil
		}
		o.line = rest
		if step, ok := strings.CutPrefix(string(line), "step: "); ok && o.say != nil {
			o.say(step)
		}
	}
}

// reason is the line that says why the compiler failed: its own error line, or the last line of a traceback.
func (o *output) reason() string {
	last := ""
	for line := range strings.Lines(o.all.String()) {
		line = strings.TrimSpace(line)
		if reason, ok := strings.CutPrefix(line, "error: "); ok {
			return reason
		}
		if line != "" && !strings.HasPrefix(line, "step: ") {
			last = line
		}
	}
	return last
}

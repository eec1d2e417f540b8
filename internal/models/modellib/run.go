package modellib

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
)

// Exit codes of the compiler. `make setup` fixes the first two.
const (
	exitNoPackages = 3
	exitNoEmcc     = 4
	exitBadShape   = 5
)

// run runs the compiler, reports its progress, and returns its error. On failure its output is kept in log.
func run(ctx context.Context, cmd *exec.Cmd, log string, say func(string)) error {
	out := &output{say: say}
	cmd.Stdout, cmd.Stderr = out, out // the same writer: never written concurrently
	// emcc starts compilers that would otherwise survive us.
	p, err := child.StartGuarded(ctx, cmd)
	if err != nil {
		return noPython("%v", err)
	}
	<-p.Done()
	p.Kill() // compilers that Python left behind
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
		case exitBadShape:
			return fault.New(fault.BadModel, "choose another model", "no model library can be compiled for this model: %s", reason)
		}
	}
	if reason == "" {
		reason = p.Err().Error()
	}
	if err := os.WriteFile(log, out.all.Bytes(), 0o644); err != nil {
		return fmt.Errorf("%s (its log could not be written: %v)", reason, err)
	}
	return fmt.Errorf("%s (log: %s)", reason, log)
}

// output collects the compiler's output and reports its steps.
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

// reason returns the line that explains a failure: the compiler's error line, or the last line of a traceback.
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

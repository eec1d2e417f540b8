package server

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/logs"
)

// explain turns an error of a session on a server into its cause: our own end, or the server's.
func (s *session) explain(ctx context.Context, p *process, m models.Model, err error) error {
	patience := time.Second // the connection breaks just before the process is reaped
	crashed := engine.ClassOf(err) == record.Crash
	if crashed {
		patience = grace // a server that has lost its engine ends by itself
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("waiting for %s: %w", p.name, ctx.Err())
	case p.Asked():
		return errClosed
	case fault.Of(err) == fault.PromptTooLong:
		return err
	case p.Ended(patience) && p.Asked():
		return errClosed
	case p.Ended(0) && m.Name != "":
		return p.died(m)
	case p.Ended(0), crashed:
		return engine.Fail(p.class(), "%s crashed (%s%s): %s", p.name, p.how(), p.Limit(), p.reason())
	case fault.Of(err) == fault.ServerUnreachable: // its advice is for somebody else's server
		return engine.Fail(record.Other, "%s", fault.What(err))
	}
	return err
}

// how says how the server ended, or that it is still there.
func (p *process) how() string {
	if p.Ended(0) {
		return p.Exit()
	}
	return "its engine ended"
}

// died returns why the process ended before it was ready. A wrong argument needs a person; whatever else ended it might
// not happen again, but a start takes long, so it is not repeated.
func (p *process) died(m models.Model) error {
	reason := p.reason()
	switch class := p.class(); {
	case p.Asked():
		return errClosed
	case portTaken.MatchString(strings.Join(p.Tail.Lines(200), "\n")):
		return child.ErrPortTaken
	case class == record.OOM:
		return engine.Fail(record.OOM, "%s ran out of memory while it loaded %s (%s%s): %s", p.name, m.Name, p.Exit(),
			p.Limit(), reason)
	case p.Signalled(), killed.MatchString(reason):
		return engine.Fail(record.Crash, "%s was killed while it loaded %s (%s): %s", p.name, m.Name, p.Exit(), reason)
	case silent.MatchString(reason):
		return engine.Fail(record.Crash, "%s lost its engine while it loaded %s (%s): %s", p.name, m.Name, p.Exit(),
			reason)
	}
	return engine.SetUp(fault.New(fault.ServerUnreachable, "correct the command, the model or the settings",
		"%s ended while it loaded %s (%s): %s", p.name, m.Name, p.Exit(), reason))
}

var (
	portTaken = regexp.MustCompile(`(?i)address already in use|couldn't bind|errno 98`)
	// killed is a worker, or an engine that starts, that a signal ended. vLLM writes None where it looks before the
	// system has the exit code.
	killed = regexp.MustCompile(`died unexpectedly \(exit code: (?:-|None)|Failed core proc\(s\): \{[^}]*: -\d`)
	// silent is an engine that ended without a word of its own.
	silent = regexp.MustCompile(`EngineDeadError`)
	// reasons find the cause in a log: of a worker that died, of Python's exceptions, and of wrong arguments.
	reasons = regexp.MustCompile(`(\S+ proc \S+ died unexpectedly \(exit code: (?:-?\d+|None)\))|` +
		`(?:^|\s)((?:\w+\.)*\w*(?:Error|Exception): .+)|(?:^|\s)error: (.+)|(GGML_ASSERT\(.+)`)
	// passedOn are exceptions that only say that another process had one.
	passedOn = regexp.MustCompile(`Engine core initialization failed|See root cause above|EngineDeadError|See stack trace|` +
		`WorkerProc initialization failed|RayTaskError|RuntimeError: cancelled`)
)

// reason is the line of the log that says most about the end: that of a killed worker, whose exceptions may come before
// it; else the first that names a cause, but not of an earlier, survived trouble; else one that only passes it on; else
// the last words.
func (p *process) reason() string {
	lines := p.Tail.Lines(2000)
	for _, tells := range []func(string) bool{
		killed.MatchString,
		func(line string) bool { return !passedOn.MatchString(line) },
		passedOn.MatchString,
	} {
		for _, line := range lines {
			if !tells(line) || strings.Contains(line, " WARNING ") {
				continue
			}
			if m := reasons.FindStringSubmatch(line); m != nil {
				return short(m[1] + m[2] + m[3] + m[4])
			}
		}
	}
	return short(logs.LastWords(lines))
}

// short is the beginning of a text, on one line.
func short(text string) string {
	return strings.ToValidUTF8(fmt.Sprintf("%.300s", fault.OneLine(text)), "?")
}

// class classifies the end by the log, and by what the kernel has killed.
func (p *process) class() record.Class {
	if p.Starved() {
		return record.OOM
	}
	return logs.ClassOf(p.Tail.Lines(2000)...)
}

package browser

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/machine"
	"llmparity/internal/record"
)

// wordsKept is how much of the browser's output is kept.
const wordsKept = 16 << 10

// wordsCome is how long output of a process may arrive after the browser has reported the end of the process.
const wordsCome = 500 * time.Millisecond

// heapFull matches what V8 prints before it ends a renderer or worker whose heap is full; the browser reports a crash.
var heapFull = regexp.MustCompile(`V8 javascript OOM \([^)]*\)|Last few GCs|(?i:out of memory)`)

// endedFor returns whether a process ended because memory ran out, and how that is known.
func (c *chrome) endedFor(status string) (class record.Class, how string) {
	if strings.Contains(strings.ToLower(status), "oom") {
		return record.OOM, status // reported by the browser, on some systems
	}
	if kills := machine.MemoryKills(); status == killed && c.memoryKills >= 0 && kills > c.memoryKills {
		return record.OOM, "the kernel killed a process because memory ran out"
	}
	if status == killed || c.words == nil {
		return record.Crash, status
	}
	const pause = 5 * time.Millisecond
	for range wordsCome / pause { // counted, because on a busy machine a deadline may pass before the first look
		if slices.ContainsFunc(c.words.Lines(wordsKept), heapFull.MatchString) {
			return record.OOM, status + "; the browser printed that memory ran out"
		}
		time.Sleep(pause)
	}
	return record.Crash, status
}

// killed is what the browser reports for a renderer that got SIGKILL.
const killed = "killed"

// crashed reports that the renderer ended, without blocking the browser's events, after waiting for output that may
// say why. The browser sends two events; the one that does not know the reason waits so that the other comes first.
func (p *Page) crashed(status string, patience time.Duration) {
	go func() {
		select {
		case <-p.chrome.ctx.Done():
			return
		case <-time.After(patience):
		}
		class, how := p.chrome.endedFor(status)
		p.chrome.lose(engine.Fail(class, "the page's renderer process ended (%s)", how))
	}()
}

// ended is called if a call's target has gone, which we do not cause ourselves.
func (p *Page) ended() {
	if p.chrome.ctx.Err() != nil {
		return
	}
	if p.isolate.worker == "" {
		p.chrome.lose(engine.Fail(record.Crash, "the page was closed"))
		return
	}
	class, how := p.chrome.endedFor("it is gone")
	p.chrome.lose(engine.Fail(class, "the page's worker ended unexpectedly (%s)", how))
}

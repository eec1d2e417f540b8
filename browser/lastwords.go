package browser

import (
	"regexp"
	"strings"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/machine"
	"llmparity/internal/record"
)

// wordsKept is how much of what the browser printed last is kept.
const wordsKept = 16 << 10

// wordsCome is how long what a process printed may take to reach us, after the browser told that the process has ended.
const wordsCome = 300 * time.Millisecond

// heapFull is what V8 prints before it ends a renderer, or a worker, whose heap is full: the browser calls both a
// crash.
var heapFull = regexp.MustCompile(`V8 javascript OOM \([^)]*\)|Last few GCs|(?i:out of memory)`)

// endedFor tells whether something of the browser's ended for want of memory, and how that is known.
func (c *chrome) endedFor(status string) (class record.Class, how string) {
	if strings.Contains(strings.ToLower(status), "oom") {
		return record.OOM, status // the browser knows, on some systems
	}
	if kills := machine.MemoryKills(); status == killed && c.memoryKills >= 0 && kills > c.memoryKills {
		return record.OOM, "the kernel ended a process for lack of memory meanwhile"
	}
	if status == killed || c.words == nil {
		return record.Crash, status
	}
	for deadline := time.Now().Add(wordsCome); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		for _, line := range c.words.Lines(wordsKept) {
			if heapFull.MatchString(line) {
				return record.OOM, status + ", and the browser printed that memory ran out"
			}
		}
	}
	return record.Crash, status
}

// killed is what the browser says of a renderer that got SIGKILL.
const killed = "killed"

// listenToWords begins to keep what the browser prints.
func (c *chrome) listenToWords() *child.Tail {
	c.words, c.memoryKills = &child.Tail{Max: wordsKept}, machine.MemoryKills()
	return c.words
}

// crashed: a renderer that ended may have said why. The wait for that must not hold up the browser's events. Of the two
// events that tell of the end, the one that doesn't know how it came about may be the first: it lets the other one
// overtake it.
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

// ended is told by calls that their target has gone: nobody but us ends it, and we make no calls then.
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

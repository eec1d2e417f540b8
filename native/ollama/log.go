package ollama

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"llmparity/internal/record"
	"llmparity/native/logs"
)

// slot is what the log tells of a request: how many tokens its prompt had once it was cut to the context, and how many
// of them lay in the cache.
type slot struct{ prompt, used int }

// logReader reads the log of a server that we started, as it is written. The log is for people: what it does not say in
// the words of one of the versions that are known stays unsaid.
type logReader struct {
	*logs.Loads // what the runner said

	mu    sync.Mutex
	slots []slot        // the requests that were told of and not yet asked for
	more  chan struct{} // closed with each
	cut   bool          // a prompt was cut, or a part of a text dropped, since it was last asked
}

func newLogReader() *logReader {
	r := &logReader{more: make(chan struct{})}
	r.Loads = logs.NewLoads(8192, r.see) // a prompt may be in a line
	return r
}

// The server's own lines that are read.
var (
	slotLine = regexp.MustCompile(`^time=\S+ level=\S+ source=\S+ msg="loading cache slot" .*\bprompt=(\d+) used=(\d+) `)
	cutLine  = regexp.MustCompile(`^time=\S+ level=\S+ source=\S+ msg="(?:truncating input prompt|context limit hit - shifting)" `)
)

// see reads a line of the server's own, and hands on those of the runner, which computes.
func (r *logReader) see(line string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := slotLine.FindStringSubmatch(line); m != nil {
		prompt, err := strconv.Atoi(m[1])
		used, err2 := strconv.Atoi(m[2])
		if err == nil && err2 == nil && used <= prompt {
			r.slots = append(r.slots, slot{prompt, used})
			r.slots = r.slots[max(0, len(r.slots)-mostSlots):] // nobody has asked for long
			close(r.more)
			r.more = make(chan struct{})
		}
	}
	r.cut = r.cut || cutLine.MatchString(line)
	if timed.MatchString(line) || request.MatchString(line) {
		return ""
	}
	return line
}

// forget empties what was said of requests: the next thing said is of the next request.
func (r *logReader) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots, r.cut = nil, false
}

// mostSlots is how much of what nobody asks for is kept.
const mostSlots = 1024

// logLag is how long the log's line of a request may take to reach us once the request has ended.
const logLag = time.Second

// await gives what was said of a request by its prompt's number of tokens; 0: whatever came last. What was said of
// others is left to them. Of several prompts of one length nobody knows which is which: where they differ, what came
// from the cache is untold.
func (r *logReader) await(prompt int) (slot, bool) {
	late := time.After(logLag)
	for {
		reported, ok, more := r.find(prompt)
		if ok {
			return reported, true
		}
		select {
		case <-more:
		case <-late:
			return slot{}, false
		}
	}
}

// find takes what was said out of the list; more is closed with what is said next.
func (r *logReader) find(prompt int) (reported slot, ok bool, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.slots); prompt == 0 && n > 0 {
		reported, r.slots = r.slots[n-1], nil
		return reported, true, nil
	}
	at := -1
	for i, s := range r.slots {
		switch {
		case s.prompt != prompt:
		case at < 0:
			at, reported = i, s
		case s.used != reported.used:
			reported.used = record.CacheUnknown
		}
	}
	if at < 0 {
		return slot{}, false, r.more
	}
	r.slots = slices.Delete(r.slots, at, at+1)
	return reported, true, nil
}

// wasCut tells, once, whether something was left out of a text since forget.
func (r *logReader) wasCut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	cut := r.cut
	r.cut = false
	return cut
}

var (
	timed   = regexp.MustCompile(`^time=\S+ level=(\w+) source=\S+ msg=`)
	request = regexp.MustCompile(`^\[GIN(-debug)?\]`)
)

// plain is a line without its time; empty where it says nothing of what went wrong.
func plain(line string) string {
	if request.MatchString(line) {
		return ""
	}
	m := timed.FindStringSubmatchIndex(line)
	if m == nil {
		return line
	}
	if level := line[m[2]:m[3]]; level == "DEBUG" || level == "TRACE" {
		return ""
	}
	return strings.TrimSpace(line[m[1]:])
}

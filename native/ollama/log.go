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

// slot is what the log says about a request: the number of prompt tokens, after truncation to the context, and how
// many of them were cached.
type slot struct{ prompt, used int }

// logReader reads the log of a server that we started while it is written. The log is meant for people: only formats
// of known versions are recognised.
type logReader struct {
	*logs.Loads // what the runner prints

	mu    sync.Mutex
	slots []slot        // reported requests that nobody has asked for
	more  chan struct{} // closed with each
	cut   bool          // a prompt or text was truncated since the last call
}

func newLogReader() *logReader {
	r := &logReader{more: make(chan struct{})}
	r.Loads = logs.NewLoads(8192, r.see) // a line may contain a prompt
	return r
}

// Lines of the server.
var (
	slotLine = regexp.MustCompile(`^time=\S+ level=\S+ source=\S+ msg="loading cache slot" .*\bprompt=(\d+) used=(\d+) `)
	cutLine  = regexp.MustCompile(`^time=\S+ level=\S+ source=\S+ msg="(?:truncating input prompt|context limit hit - shifting)" `)
)

// see reads a line of the server, and passes on those of the runner.
func (r *logReader) see(line string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := slotLine.FindStringSubmatch(line); m != nil {
		prompt, err := strconv.Atoi(m[1])
		used, err2 := strconv.Atoi(m[2])
		if err == nil && err2 == nil && used <= prompt {
			r.slots = append(r.slots, slot{prompt, used})
			r.slots = r.slots[max(0, len(r.slots)-mostSlots):]
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

// forget discards reported requests, so that the next report is about the next request.
func (r *logReader) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots, r.cut = nil, false
}

// mostSlots limits how many reports are kept.
const mostSlots = 1024

// logLag is how long the log line of a request may arrive after the request has ended.
const logLag = time.Second

// await returns the report of a request with this number of prompt tokens; 0: the latest report. Other reports stay.
// If several prompts of this length differ in their cached tokens, the cached tokens are unknown.
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

// find removes a report from the list; more is closed when the next one arrives.
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

// wasCut reports, once, whether something was truncated since forget.
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

// plain returns a line without its time; empty if it says nothing about a failure.
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

package catalogue

import (
	"fmt"
	"sync"
	"time"

	"llmparity/internal/kit/words"
)

// meter reports the progress of a download, at most every interval.
type meter struct {
	id       string
	say      func(string) // nil: nobody listens
	interval time.Duration

	mu          sync.Mutex
	bytes, all  int64 // complete, and of how many; 0: unknown
	files, last int   // complete, and of how many; 0: unknown
	loaded      int64 // over the network
	began, said time.Time
}

// expect adds what is known to come.
func (m *meter) expect(bytes int64, files int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all, m.last = m.bytes+bytes, m.files+files
}

// add counts bytes that were downloaded or found. It is negative for bytes that are downloaded again.
func (m *meter) add(n int64, loaded bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes += n
	if loaded {
		m.loaded += n
	}
	m.report()
}

// finished counts a file.
func (m *meter) finished() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files++
	m.report()
}

func (m *meter) note(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.say != nil {
		m.say(m.id + ": " + text)
	}
}

// reached reports whether anything was downloaded.
func (m *meter) reached() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loaded > 0
}

func (m *meter) report() {
	if m.began.IsZero() {
		m.began = time.Now()
	}
	if complete := m.last > 0 && m.files == m.last; m.say == nil || !complete && time.Since(m.said) < m.interval {
		return
	}
	m.said = time.Now()
	line := fmt.Sprintf("fetching %s: %s", m.id, words.Size(m.bytes))
	if m.all > 0 {
		line += fmt.Sprintf(" of %s, %d of %d files", words.Size(m.all), m.files, m.last)
	}
	if passed := time.Since(m.began).Seconds(); m.loaded > 0 && passed > 0 {
		line += ", " + words.Size(int64(float64(m.loaded)/passed)) + "/s"
	}
	m.say(line)
}

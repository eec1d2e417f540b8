package catalogue

import (
	"fmt"
	"sync"
	"time"
)

// Progress is how far a fetch is.
type Progress struct {
	ID    string
	Done  int     // files that are whole
	Files int     // of how many; 0: not known yet
	Bytes int64   // that are here, those of earlier fetches too
	Total int64   // of how many; 0: not known yet
	Rate  float64 // bytes a second over the network, lately; 0: not known
	Note  string  // something happened that is no progress: a wait, another try
}

// String is a line for people.
func (p Progress) String() string {
	if p.Note != "" {
		return p.ID + ": " + p.Note
	}
	s := fmt.Sprintf("fetching %s: %s", p.ID, size(p.Bytes))
	if p.Total > 0 {
		s += fmt.Sprintf(" of %s, %d of %d files", size(p.Total), p.Done, p.Files)
	}
	if p.Rate > 0 {
		s += ", " + size(int64(p.Rate)) + "/s"
	}
	return s
}

// Lines tells say of a fetch, a line at most each time that every has passed; notes at once.
func Lines(say func(string), every time.Duration) func(Progress) {
	var last time.Time
	return func(p Progress) {
		if p.Note == "" && time.Since(last) < every && (p.Files == 0 || p.Done < p.Files) {
			return
		}
		last = time.Now()
		say(p.String())
	}
}

// tick is how often progress is told.
const tick = 250 * time.Millisecond

// meter counts, and tells one listener at a time.
type meter struct {
	mu     sync.Mutex
	tell   func(Progress)
	now    Progress
	loaded int64     // over the network since last
	came   bool      // anything, over the network
	last   time.Time // when it was told
}

func newMeter(id string, tell func(Progress)) *meter {
	if tell == nil {
		tell = func(Progress) {}
	}
	return &meter{tell: tell, now: Progress{ID: id}, last: time.Now()}
}

// expect adds what is known to come.
func (m *meter) expect(bytes int64, files int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// What has come so far is all there was.
	m.now.Total, m.now.Files = m.now.Bytes+bytes, m.now.Done+files
}

// add counts bytes that came, or that were there; fewer than none when they have to be fetched again.
func (m *meter) add(n int64, loaded bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Bytes += n
	if loaded {
		m.loaded += n
		m.came = true
	}
	if time.Since(m.last) >= tick {
		m.report()
	}
}

func (m *meter) finished() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Done++
	m.report()
}

func (m *meter) note(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.now
	p.Note = text
	m.tell(p)
}

// report tells; the rate is mostly that of the last seconds.
func (m *meter) report() {
	if passed := time.Since(m.last); passed >= tick {
		const weight = 0.3
		rate := float64(m.loaded) / passed.Seconds()
		if m.now.Rate > 0 {
			rate = weight*rate + (1-weight)*m.now.Rate
		}
		m.now.Rate, m.loaded, m.last = rate, 0, time.Now()
	}
	m.tell(m.now)
}

// reached tells whether anything came over the network.
func (m *meter) reached() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.came
}

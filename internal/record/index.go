package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
)

// indexEvery is how far the journal grows until it gets the next index: so much of it must be read line by line to go on with a run.
const indexEvery = 2 << 20

// indexLine says what is in the journal since the index before, so that a run of a million lines can be resumed without reading them all.
// It speaks only of what stands before it in the same file: however that is cut, an index that is there is right. One that isn't where it
// says it is was moved by somebody, and none is believed then.
type indexLine struct {
	At       int64 `json:"at"`                 // where its own line begins
	Previous int64 `json:"previous,omitempty"` // where the one before begins; 0: there is none
	// The highest numbers so far, and how often the run was resumed.
	Attempts  int           `json:"attempts"`
	Sources   int           `json:"sources"`
	Resumes   int           `json:"resumes,omitempty"`
	Cells     []indexedCell `json:"cells,omitempty"`
	Commits   []Commit      `json:"commits,omitempty"`
	Predicted []int         `json:"predicted,omitempty"`
	Judged    []int         `json:"judged,omitempty"`
	Stopped   []int         `json:"stopped,omitempty"`
	Begun     []Commit      `json:"begun,omitempty"` // all that have no end, of the whole run
}

// indexedCell is where a cell's line is.
type indexedCell struct {
	ID   int   `json:"id"`
	At   int64 `json:"at"`
	Size int   `json:"size"`
}

// index gives the line that is to be written at a byte, for what came since the last one.
func (s *State) index(at int64) *indexLine {
	i := s.since
	i.At, i.Previous = at, s.since.At
	i.Attempts, i.Sources, i.Resumes = s.Attempts, s.Sources, s.Resumes
	for _, n := range slices.Sorted(maps.Keys(s.begun)) {
		i.Begun = append(i.Begun, s.begun[n])
	}
	return &i
}

// byIndex takes in the journal's indexes and gives the byte behind the last. ok is false where they can't be believed.
func (s *State) byIndex(journal io.ReaderAt, end int64) (from int64, ok bool) {
	at, found := lastIndex(journal, end)
	if !found {
		return 0, true
	}
	var all []indexLine
	last := at
	for {
		e, size, ok := indexAt(journal, at, end)
		if !ok {
			return 0, false
		}
		if len(all) == 0 {
			from, s.LastNS = at+size, e.T
		}
		all = append(all, *e.Index)
		if e.Index.Previous == 0 {
			break
		}
		if e.Index.Previous < 0 || e.Index.Previous >= at {
			return 0, false
		}
		at = e.Index.Previous
	}
	for _, i := range slices.Backward(all) {
		s.take(i)
	}
	for _, c := range all[0].Begun {
		s.begun[c.Attempt] = c
	}
	s.Attempts, s.Sources, s.Resumes = all[0].Attempts, all[0].Sources, all[0].Resumes
	s.since = indexLine{At: last}
	return from, true
}

func (s *State) take(i indexLine) {
	for _, c := range i.Cells {
		s.announce(c)
	}
	for _, c := range i.Commits {
		s.commit(c)
	}
	for _, cell := range i.Predicted {
		s.predict(cell)
	}
	for _, cell := range i.Judged {
		s.judge(cell)
	}
	for _, cell := range i.Stopped {
		s.stop(cell)
	}
}

// indexMark is in index lines alone: within a text its quotation marks would be escaped.
var indexMark = []byte(`,"index":{"at":`)

// lastIndex looks for the last index line, from the end on.
func lastIndex(journal io.ReaderAt, end int64) (at int64, found bool) {
	buffer := make([]byte, 16*block+len(indexMark))
	for end > 0 {
		start := max(0, end-16*block)
		part := buffer[:min(int64(len(buffer)), end-start+int64(len(indexMark)))]
		n, err := journal.ReadAt(part, start) // it goes on into what was looked at before: a mark may lie across
		if err != nil && err != io.EOF {
			return 0, false
		}
		if i := bytes.LastIndex(part[:n], indexMark); i >= 0 {
			return lineBegin(journal, start+int64(i))
		}
		end = start
	}
	return 0, false
}

// lineBegin is where the line of a byte begins. What stands before an index's mark is short.
func lineBegin(journal io.ReaderAt, at int64) (int64, bool) {
	start := max(0, at-256)
	part := make([]byte, at-start)
	if _, err := journal.ReadAt(part, start); err != nil {
		return 0, false
	}
	return start + int64(bytes.LastIndexByte(part, '\n')) + 1, true
}

// indexAt reads the index line that begins at a byte, and how long it is.
func indexAt(journal io.ReaderAt, at, end int64) (e entry, size int64, ok bool) {
	in := bufio.NewReaderSize(io.NewSectionReader(journal, at, end-at), block)
	line, _, err := readLine(in, nil)
	if err != nil || json.Unmarshal(line, &e) != nil || e.Index == nil || e.Index.At != at {
		return e, 0, false
	}
	return e, int64(len(line)) + 1, true
}

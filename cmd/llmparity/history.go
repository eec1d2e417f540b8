package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"llmparity/internal/record"
)

// history is what launches took in earlier runs, by engine and model: what a plan's time is foretold by. It knows nothing of how a machine
// was then, and takes prompts for free, which they nearly are beside what is generated.
type history map[pastKey]*past

type pastKey struct{ engine, model string } // names, as records have them

// past is launches that went well.
type past struct {
	around   []float64 // seconds of a launch without what is measured
	pertoken []float64 // seconds that a token took
}

// Bounds on what is read of earlier runs: the newest ones tell most.
const (
	mostRuns    = 12
	mostJournal = 16 << 20
)

// pastRuns reads what there is in the folder that holds run folders; what can't be read tells nothing.
func pastRuns(out string) history {
	h := history{}
	entries, _ := os.ReadDir(out) // none: nothing is known
	type aged struct {
		path string
		at   time.Time
	}
	var found []aged
	for _, e := range entries {
		path := filepath.Join(out, e.Name(), "journal.jsonl")
		if info, err := os.Stat(path); err == nil && e.IsDir() {
			found = append(found, aged{path, info.ModTime()})
		}
	}
	slices.SortFunc(found, func(a, b aged) int { return b.at.Compare(a.at) })
	for _, f := range found[:min(len(found), mostRuns)] {
		h.read(f.path)
	}
	return h
}

// pastLine is what matters here of a line of the journal.
type pastLine struct {
	T       int64 `json:"t_ns"`
	Attempt int   `json:"attempt"`
	Cell    *struct {
		ID     int    `json:"id"`
		Engine string `json:"engine"`
		Model  struct {
			Name string `json:"name"`
		} `json:"model"`
	} `json:"cell"`
	Begin *struct {
		Cell     int       `json:"cell"`
		OpenedBy int       `json:"opened_by"`
		Scoring  *struct{} `json:"scoring"`
	} `json:"begin"`
	Phase *struct {
		Name  record.Phase `json:"name"`
		Begin int64        `json:"begin_ns"`
		End   int64        `json:"end_ns"`
	} `json:"phase"`
	Request *struct {
		Phase  record.Phase `json:"phase"`
		Tokens int          `json:"tokens"`
	} `json:"request"`
	End *struct {
		Status record.Status `json:"status"`
	} `json:"end"`
}

// launched is an attempt while it is read.
type launched struct {
	key      pastKey
	begin    int64
	measured int64
	tokens   int
	opens    bool
	skip     bool
}

// marks are in the lines that are looked at.
var marks = [][]byte{[]byte(`"cell":{"id"`), []byte(`"begin":{`), []byte(`"name":"measure"`), []byte(`"phase":"measure"`), []byte(`"end":{`)}

func (h history) read(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	cells, going := map[int]pastKey{}, map[int]*launched{}
	r := bufio.NewReaderSize(io.LimitReader(f, mostJournal), 1<<20)
	for {
		line, err := r.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			for err == bufio.ErrBufferFull { // longer than any that matters
				_, err = r.ReadSlice('\n')
			}
			continue
		}
		if err != nil {
			return
		}
		if !slices.ContainsFunc(marks, func(m []byte) bool { return bytes.Contains(line, m) }) {
			continue
		}
		var l pastLine
		if json.Unmarshal(line, &l) == nil {
			h.take(l, cells, going)
		}
	}
}

func (h history) take(l pastLine, cells map[int]pastKey, going map[int]*launched) {
	if l.Cell != nil {
		cells[l.Cell.ID] = pastKey{l.Cell.Engine, l.Cell.Model.Name}
		return
	}
	if l.Begin != nil {
		going[l.Attempt] = &launched{key: cells[l.Begin.Cell], begin: l.T, opens: l.Begin.OpenedBy == 0, skip: l.Begin.Scoring != nil}
		return
	}
	a := going[l.Attempt]
	switch {
	case a == nil:
	case l.Phase != nil && l.Phase.Name == record.Measure:
		a.measured = l.Phase.End - l.Phase.Begin
	case l.Request != nil && l.Request.Phase == record.Measure:
		a.tokens += l.Request.Tokens
	case l.End != nil:
		delete(going, l.Attempt)
		if l.End.Status != record.OK || a.skip || a.tokens == 0 || a.measured <= 0 {
			return
		}
		p := h[a.key]
		if p == nil {
			p = &past{}
			h[a.key] = p
		}
		p.pertoken = append(p.pertoken, float64(a.measured)/1e9/float64(a.tokens))
		if a.opens {
			p.around = append(p.around, max(float64(l.T-a.begin-a.measured), 0)/1e9)
		}
	}
}

// of foretells how long attempts take of which so many launch the engine and all together generate so many tokens.
func (h history) of(key pastKey, launches, tokens int) (seconds float64, known bool) {
	p := h[key]
	if p == nil || len(p.around) == 0 {
		return 0, false
	}
	return float64(launches)*middle(p.around) + float64(tokens)*middle(p.pertoken), true
}

// middle is the median, which sorts its values.
func middle(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

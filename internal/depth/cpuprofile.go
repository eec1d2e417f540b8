package depth

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// ReadCPUProfile reads a CPU profile of Chrome's: stacks of JavaScript, weighed by microseconds. Idle time is left out.
func ReadCPUProfile(r io.Reader) (*Stacks, error) {
	var p struct {
		Nodes []struct {
			ID        int `json:"id"`
			CallFrame struct {
				Function string `json:"functionName"`
			} `json:"callFrame"`
			Children []int `json:"children"`
		} `json:"nodes"`
		Samples []int   `json:"samples"`
		Deltas  []int64 `json:"timeDeltas"`
	}
	if err := json.NewDecoder(r).Decode(&p); err != nil {
		return nil, err
	}
	if len(p.Samples) != len(p.Deltas) {
		return nil, fmt.Errorf("%d samples have %d times", len(p.Samples), len(p.Deltas))
	}
	name, parent := map[int]string{}, map[int]int{}
	for _, n := range p.Nodes {
		name[n.ID] = n.CallFrame.Function
		if name[n.ID] == "" {
			name[n.ID] = "(anonymous)"
		}
		for _, child := range n.Children {
			parent[child] = n.ID
		}
	}
	s := NewStacks(time.Microsecond)
	for i, id := range p.Samples {
		var frames []string
		for at := id; at != 0 && len(frames) < 1000; at = parent[at] {
			if name[at] != "(root)" {
				frames = append(frames, name[at])
			}
		}
		if len(frames) == 0 || frames[0] == "(idle)" {
			continue
		}
		slices.Reverse(frames)
		s.Samples++
		s.Add(frames, max(0, p.Deltas[i]))
	}
	return s, nil
}

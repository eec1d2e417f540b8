package evidence

import "fmt"

// Counts counts the attempts of a cell by how they ended.
type Counts struct {
	Planned int `json:"planned"`
	Counted int `json:"counted"`
	// number of processes or sessions of the counted ones, if they are fewer
	Opened      int `json:"opened,omitempty"`
	Warmup      int `json:"warmup"`
	Failed      int `json:"failed"`
	Interrupted int `json:"interrupted"`
}

// Add adds the counts of another cell.
func (c *Counts) Add(o Counts) {
	c.Counted, c.Failed, c.Interrupted = c.Counted+o.Counted, c.Failed+o.Failed, c.Interrupted+o.Interrupted
}

// Ended says how a cell without counted launches ended. An interrupted launch has not failed.
func (c Counts) Ended() string {
	switch {
	case c.Failed > 0:
		return "failed"
	case c.Interrupted > 0:
		return "interrupted"
	}
	return "not launched"
}

// Lost says how many of the launches do not count, and why; empty if all count.
func (c Counts) Lost() string {
	lost := c.Failed + c.Interrupted
	was := "was interrupted"
	if lost > 1 {
		was = "were interrupted"
	}
	switch {
	case lost == 0:
		return ""
	case c.Interrupted == 0:
		was = "failed"
	case c.Failed > 0:
		was = "failed or " + was
	}
	return fmt.Sprintf("%d of %d launches %s", lost, lost+c.Counted, was)
}

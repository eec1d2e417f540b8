package axis

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"llmparity/internal/record"
)

// trafficWords describe how requests arrive.
func trafficWords(c *record.Cell) string {
	t := c.Traffic
	if t == nil {
		return "one request"
	}
	words := ""
	switch t.Loop {
	case record.Batch:
		words = fmt.Sprintf("batch %d", t.Concurrency)
	case record.OpenLoop:
		if words = "open loop"; t.Rate > 0 {
			words = fmt.Sprintf("%g requests/s", t.Rate)
		}
		if t.Concurrency > 0 {
			words += fmt.Sprintf(", %d at once", t.Concurrency)
		}
	default:
		words = fmt.Sprintf("concurrency %d", t.Concurrency)
	}
	if t.Turns > 1 {
		words += fmt.Sprintf(", %d turns", t.Turns)
	}
	var kinds []string
	for _, k := range t.Mix {
		kinds = append(kinds, k.Name)
	}
	if len(kinds) > 0 {
		words += ", " + strings.Join(kinds, " and ")
	}
	return words
}

func sameTraffic(a, b *record.Cell) bool { return reflect.DeepEqual(a.Traffic, b.Traffic) }

// trafficKey identifies a traffic; nil is a single request.
func trafficKey(t *record.Traffic) string {
	text, _ := json.Marshal(t) // plain data
	return string(text)
}

// atOnce is the number of concurrent requests of a loop: 1 for a single request, 0 for another loop.
func atOnce(loop string) func(*record.Cell) int {
	return func(c *record.Cell) int {
		switch t := c.Traffic; {
		case t == nil:
			return 1
		case t.Loop == loop:
			return t.Concurrency
		}
		return 0
	}
}

func turns(c *record.Cell) int {
	if c.Traffic == nil {
		return 1
	}
	return max(c.Traffic.Turns, 1)
}

// but identifies a traffic without the number of concurrent requests and what depends on it. A single request counts as
// traffic of the loop.
func but(loop string) func(*record.Cell) string {
	return func(c *record.Cell) string {
		t := rest(c, loop)
		t.Concurrency = 0
		return trafficKey(&t)
	}
}

// butTurns identifies a traffic without the number of turns and what depends on it.
func butTurns(c *record.Cell) string {
	t := rest(c, record.ClosedLoop)
	t.Turns = 0
	return trafficKey(&t)
}

// rest is a traffic without what depends on its numbers; a single request is one client of a loop.
func rest(c *record.Cell, loop string) record.Traffic {
	t := record.Traffic{Loop: loop, Concurrency: 1}
	if c.Traffic != nil {
		t = *c.Traffic
	}
	t.Requests, t.Seed = 0, 0
	return t
}

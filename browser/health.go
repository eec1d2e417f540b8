package browser

import (
	"context"
	"fmt"
	"time"

	"llmparity/internal/record"
)

// watchBlocks begins to watch how long the page's main thread is blocked, wherever the engine runs.
func (p *Page) watchBlocks(ctx context.Context) error {
	_, err := callIn[any](ctx, p, PageThread, "llmparityPage.health.watch()")
	if err != nil {
		return fmt.Errorf("watching the page's main thread: %w", err)
	}
	return nil
}

const blocked = "page clock: the longest time for which a timer of the page's main thread was late, to within 20 ms"

// blocks ends the watch, and returns the longest block in each of some spans, with the name that it has in records. A
// span in which nothing was late has one of no length.
func (p *Page) blocks(ctx context.Context, in []record.Span) ([]record.Span, error) {
	times := [][2]float64{}
	for _, s := range in {
		times = append(times, [2]float64{p.ms(s.Begin), p.ms(s.End)})
	}
	expression, err := expressionOf("llmparityPage.health.longest", times)
	if err != nil {
		return nil, err
	}
	found, err := callIn[[]*[2]float64](ctx, p, PageThread, expression)
	if err != nil || len(found) != len(in) {
		return nil, fmt.Errorf("reading the page's blocks: %w", err)
	}
	var out []record.Span
	for i, s := range in {
		block := record.Span{Name: record.BlockIn(s.Name), Begin: s.Begin, End: s.Begin, How: blocked}
		if at := found[i]; at != nil {
			block.Begin, block.End = p.At(at[0]), p.At(at[1])
		}
		out = append(out, block)
	}
	return out, nil
}

// ms is the time of the page's clock at a time of ours; At is its inverse.
func (p *Page) ms(at time.Time) float64 {
	c := p.clock
	return float64(at.Sub(c.anchor).Nanoseconds()+c.offset+c.anchor.UnixNano()) / 1e6
}

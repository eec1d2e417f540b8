package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"llmparity/internal/fault"
)

// Sizes asks a mirror how large the models' weights are: it gives bytes by id, of those that the mirror has. The error is that it
// can't be reached, after which nothing more is asked.
func Sizes(ctx context.Context, models []Entry, o Options) (map[string]int64, error) {
	from, err := newSource(o.Mirror, o.Transport)
	if err != nil {
		return nil, err
	}
	defer from.close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan Entry, len(models))
	for _, e := range models {
		todo <- e
	}
	close(todo)
	const atOnce = 8
	sizes := map[string]int64{}
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for e := range todo {
				n, err := from.size(ctx, e)
				if unreached(err) {
					cancel(fault.Wrap(fault.Download, cause(err, &url.URL{}), "check its address", "the mirror %s can't be reached", o.Mirror))
				}
				if ctx.Err() != nil {
					return
				}
				if err == nil { // else it isn't known, for whatever reason
					mu.Lock()
					sizes[e.ID] = n
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	return sizes, context.Cause(ctx)
}

// size reads the list of a model's weights.
func (s *source) size(ctx context.Context, e Entry) (int64, error) {
	var status *errStatus
	w, err := s.weights(ctx, s.file(e, weightsName))
	if errors.As(err, &status) && status.code == http.StatusNotFound {
		w, err = s.weights(ctx, s.file(e, oldWeightsName))
	}
	return w.Bytes(), err
}

func (s *source) weights(ctx context.Context, at *url.URL) (Weights, error) {
	const patience = 20 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return Weights{}, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return Weights{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Weights{}, statusOf(resp)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxText))
	if err != nil {
		return Weights{}, fmt.Errorf("reading %s: %w", at, err)
	}
	return ParseWeights(text)
}

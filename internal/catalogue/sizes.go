package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"llmparity/internal/fault"
)

// Sizes asks a mirror how large the models' weights are: it gives bytes by id, of those that the mirror has. The error
// is that it can't be reached, after which nothing more is asked.
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
					cancel(fault.Wrap(fault.Download, cause(err, &url.URL{}), "check its address",
						"the mirror %s can't be reached", o.Mirror))
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
	text, err := s.list(ctx, e)
	if err != nil {
		return 0, err
	}
	w, err := ParseWeights(text)
	return w.Bytes(), err
}

// list gives the list of a model's weights, under the name that it has.
func (s *source) list(ctx context.Context, e Entry) ([]byte, error) {
	text, err := s.text(ctx, s.file(e, weightsName))
	if missing(err) {
		return s.text(ctx, s.file(e, oldWeightsName))
	}
	return text, err
}

func missing(err error) bool {
	var status *errStatus
	return errors.As(err, &status) && status.code == http.StatusNotFound
}

// Lists are a package's settings and the list of its weights, as they were published; nil is what is not there.
type Lists struct{ Config, Weights []byte }

// Published asks a mirror for a model's lists. The error is fs.ErrNotExist where the mirror has no settings of it.
func Published(ctx context.Context, e Entry, o Options) (Lists, error) {
	from, err := newSource(o.Mirror, o.Transport)
	if err != nil {
		return Lists{}, err
	}
	defer from.close()
	at := from.file(e, ConfigName)
	config, err := from.text(ctx, at)
	if missing(err) {
		return Lists{}, fmt.Errorf("the mirror %s has no %s of %s: %w", o.Mirror, ConfigName, e.ID, fs.ErrNotExist)
	}
	var list []byte
	if err == nil {
		at = from.file(e, weightsName)
		if list, err = from.list(ctx, e); missing(err) {
			err = nil
		}
	}
	if err != nil {
		return Lists{}, fault.Wrap(fault.Download, cause(err, at), "check the address", "the mirror %s", o.Mirror)
	}
	return Lists{config, list}, nil
}

// Kept are the lists of a model that is in the store in part: of a download that was cut, or with files that are gone.
// The error is fs.ErrNotExist where not even the settings are there.
func Kept(store, id string) (Lists, error) {
	if !plainName.MatchString(id) {
		return Lists{}, fs.ErrNotExist
	}
	for _, dir := range []string{filepath.Join(store, id), workDir(store, id)} {
		config, err := os.ReadFile(filepath.Join(dir, ConfigName))
		if err != nil {
			continue
		}
		list, err := readList(dir)
		if err != nil { // then the settings are all there is
			list = nil
		}
		return Lists{config, list}, nil
	}
	return Lists{}, fs.ErrNotExist
}

// text reads one of a package's lists.
func (s *source) text(ctx context.Context, at *url.URL) ([]byte, error) {
	const patience = 20 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, statusOf(resp)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxText))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", at, err)
	}
	return text, nil
}

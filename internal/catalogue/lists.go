package catalogue

import (
	"context"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"sync"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/mlc"
	"llmparity/internal/workers"
)

// Sizes returns the bytes of the models' weights on a mirror, by id, for the models that it has. If the mirror cannot
// be reached, the first request ends it.
func Sizes(ctx context.Context, models []Entry, o Options) (map[string]int64, error) {
	from, err := openSource(o.Mirror, o.Transport)
	if err != nil {
		return nil, err
	}
	defer from.close()
	sizes := map[string]int64{}
	var mu sync.Mutex
	err = workers.Each(ctx, 2*atOnce, len(models), func(ctx context.Context, i int) error {
		text, err := from.list(ctx, models[i])
		if unreached(err) {
			return fault.Wrap(fault.Download, err, "check its address", "mirror %s cannot be reached", o.Mirror)
		}
		if shards, err := mlc.ParseShards(text); err == nil {
			mu.Lock()
			defer mu.Unlock()
			sizes[models[i].ID] = bytesOf(shards)
		}
		return nil // other errors: unknown
	})
	return sizes, err
}

// Published returns a model's configuration and its list of weights on a mirror. The error is fs.ErrNotExist if the
// mirror lacks one of them.
func Published(ctx context.Context, e Entry, o Options) (config, weights []byte, err error) {
	from, err := openSource(o.Mirror, o.Transport)
	if err != nil {
		return nil, nil, err
	}
	defer from.close()
	if config, err = from.text(ctx, from.file(e, ConfigName)); err == nil {
		weights, err = from.list(ctx, e)
	}
	switch {
	case missing(err):
		err = fs.ErrNotExist
	case err != nil:
		err = fault.Wrap(fault.Download, err, "check the address", "mirror %s", o.Mirror)
	}
	return config, weights, err
}

// list reads a model's list of weights.
func (s *source) list(ctx context.Context, e Entry) (text []byte, err error) {
	err = eitherList(func(name string) error {
		text, err = s.text(ctx, s.file(e, name))
		return err
	})
	return text, err
}

// text reads a file of a package.
func (s *source) text(ctx context.Context, at *url.URL) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	req, err := newRequest(ctx, at)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errStatus(resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxText))
	return text, err
}

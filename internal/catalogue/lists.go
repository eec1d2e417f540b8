package catalogue

import (
	"context"
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
	"llmparity/internal/mlc"
	"llmparity/internal/workers"
)

// Lists are a package's configuration and its list of weights; nil: not there.
type Lists struct{ Config, Weights []byte }

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

// Published returns a model's lists on a mirror. The error is fs.ErrNotExist if the mirror has no configuration of it.
func Published(ctx context.Context, e Entry, o Options) (l Lists, err error) {
	from, err := openSource(o.Mirror, o.Transport)
	if err != nil {
		return l, err
	}
	defer from.close()
	l.Config, err = from.text(ctx, from.file(e, ConfigName))
	if missing(err) {
		return l, fmt.Errorf("mirror %s has no %s of %s: %w", o.Mirror, ConfigName, e.ID, fs.ErrNotExist)
	}
	if err == nil {
		if l.Weights, err = from.list(ctx, e); missing(err) {
			err = nil
		}
	}
	if err != nil {
		return l, fault.Wrap(fault.Download, err, "check the address", "mirror %s", o.Mirror)
	}
	return l, nil
}

// Kept returns the lists of a model that is only partly in the store. The error is fs.ErrNotExist if it has no
// configuration.
func Kept(store, id string) (l Lists, err error) {
	for _, dir := range []string{filepath.Join(store, id), workDir(store, id)} {
		if l.Config, err = os.ReadFile(filepath.Join(dir, ConfigName)); err != nil {
			continue
		}
		// Without the list, the configuration is all there is.
		_ = eitherList(func(name string) error {
			l.Weights, err = os.ReadFile(filepath.Join(dir, name))
			return err
		})
		return l, nil
	}
	return l, fs.ErrNotExist
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

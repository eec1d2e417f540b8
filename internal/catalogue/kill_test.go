package catalogue_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"llmparity/assets/page"
	"llmparity/internal/catalogue"
)

// These make the test binary a program that fetches, so that it can be killed.
const (
	fetchFrom = "LLMPARITY_TEST_FETCH_FROM"
	fetchInto = "LLMPARITY_TEST_FETCH_INTO"
)

func TestMain(m *testing.M) {
	if os.Getenv(fetchFrom) == "" {
		os.Exit(m.Run())
	}
	if err := fetchAsProgram(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func fetchAsProgram() error {
	text, err := page.Catalogue()
	if err != nil {
		return err
	}
	c, err := catalogue.Parse(text)
	if err != nil {
		return err
	}
	e, err := c.Find(id)
	if err != nil {
		return err
	}
	_, err = catalogue.Fetch(context.Background(), e,
		catalogue.Options{Store: os.Getenv(fetchInto), Mirror: os.Getenv(fetchFrom)}, nil)
	return err
}

// A fetch is ended while the last shard comes: others are whole then.
func TestFetchResumes(t *testing.T) {
	mine := errors.New("enough")
	for name, fetching := range map[string]func(t *testing.T, o catalogue.Options, enough <-chan struct{}){
		"cancelled": func(t *testing.T, o catalogue.Options, enough <-chan struct{}) {
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { <-enough; cancel(mine) }()
			if _, err := catalogue.Fetch(ctx, entry(t), o.Impatient(), nil); !errors.Is(err, mine) {
				t.Error(err)
			}
		},
		"killed": func(t *testing.T, o catalogue.Options, enough <-chan struct{}) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), fetchFrom+"="+o.Mirror, fetchInto+"="+o.Store)
			cmd.Stderr = os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-enough
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("it ended by itself")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := randomMirror(t)
			s := serve(t, dir)
			enough := make(chan struct{})
			stop := sync.OnceFunc(func() { close(enough) })
			s.misbehave(func(w http.ResponseWriter, r *http.Request, file string, _ int) bool {
				if file == "params_shard_4.bin" {
					halt := func() { stop(); <-r.Context().Done() }
					s.send(&stopping{ResponseWriter: w, left: 1 << 20, stop: halt}, r)
				}
				return file == "params_shard_4.bin"
			})
			o := catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}
			fetching(t, o, enough)
			work := filepath.Join(o.Store, ".fetching-"+id)
			have := shardsIn(t, work)
			whole, err := filepath.Glob(filepath.Join(work, "*.bin"))
			if err != nil || len(whole) == 0 {
				t.Fatalf("no shard is whole: %v", err)
			}
			s.misbehave(nil)
			s.reset()
			equal(t, fetch(t, o), dir)
			for _, file := range append(whole, "mlc-chat-config.json", "tensor-cache.json") {
				if s.times(filepath.Base(file)) != 0 {
					t.Errorf("%s was fetched again: %v", filepath.Base(file), s.asked)
				}
			}
			if s.shardsSent() != shards*shardSize-have || have < shardSize {
				t.Errorf("%d bytes were there, %d were sent then, of %d", have, s.shardsSent(), shards*shardSize)
			}
		})
	}
}

package catalogue_test

import (
	"context"
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

func TestKilledFetchResumes(t *testing.T) {
	dir := randomMirror(t)
	s := serve(t, dir)
	var once sync.Once
	enough := make(chan struct{})
	s.misbehave(func(w http.ResponseWriter, r *http.Request, file string, _ int) bool {
		if file == "params_shard_4.bin" { // the last one: others are whole
			s.send(&stopping{ResponseWriter: w, left: 1 << 20, stop: func() {
				once.Do(func() { close(enough) })
				<-r.Context().Done()
			}}, r)
			return true
		}
		return false
	})
	store := catalogue.Store(t.TempDir())
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fetchFrom+"="+s.URL, fetchInto+"="+store)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-enough
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("it ended by itself")
	}
	have := shardsIn(t, filepath.Join(store, ".fetching-"+id))
	s.misbehave(nil)
	s.reset()
	equal(t, fetch(t, catalogue.Options{Store: store, Mirror: s.URL}), dir)
	if s.times("tensor-cache.json") != 0 || s.shardsSent() != shards*shardSize-have || have < shardSize {
		t.Errorf("%d bytes were there, %d were sent then, of %d; requests: %v", have, s.shardsSent(), shards*shardSize,
			s.asked)
	}
}

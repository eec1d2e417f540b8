package catalogue_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/catalogue"
	"llmparity/internal/models/mlc"
)

// fetch fetches the model that the mirrors have.
func fetch(t *testing.T, o catalogue.FetchOptions) catalogue.Package {
	t.Helper()
	p, err := catalogue.Fetch(t.Context(), entry(t), o.Impatient(), nil)
	check.Err(t, err)
	same(t, p)
	return p
}

// same checks that a package is complete.
func same(t *testing.T, p catalogue.Package) {
	t.Helper()
	check.Also(t, p.Verify(t.Context()))
	library, f := p.Library()
	if got, err := os.ReadFile(library); err != nil || !bytes.Equal(got, module) ||
		!strings.HasSuffix(f.From, libraryPath) {
		t.Errorf("the library, %+v: %v", f, err)
	}
	entries, err := os.ReadDir(p.Dir)
	if err != nil || len(entries) != len(p.Files)+1 {
		t.Errorf("%d files are in the folder, %d should be: %v", len(entries), len(p.Files)+1, err)
	}
}

// equal compares a stored package with a mirror's.
func equal(t *testing.T, p catalogue.Package, mirror string) {
	t.Helper()
	for _, f := range p.Files {
		want := filepath.Join(mirror, filepath.FromSlash(packagePath), f.Name)
		if f.Name == catalogue.LibraryName {
			want = filepath.Join(mirror, filepath.FromSlash(libraryPath))
		}
		a := check.Read(t, want)
		if b, err := os.ReadFile(filepath.Join(p.Dir, f.Name)); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is not what the mirror has: %v", f.Name, err)
		}
	}
}

func TestFetchARealPackage(t *testing.T) {
	dir, store := tinyMirror(t), catalogue.Store(t.TempDir())
	s := serve(t, dir)
	p := fetch(t, catalogue.FetchOptions{Store: store, Mirror: s.URL + "/"})
	equal(t, p, dir)
	if p.Dir != filepath.Join(store, id) || p.Source != s.URL {
		t.Errorf("%+v", p)
	}
	if s.requests() != len(p.Files) {
		t.Errorf("%d requests for %d files", s.requests(), len(p.Files))
	}
	// Now neither network nor mirror is needed.
	s.Close()
	for _, mirror := range []string{"", s.URL} {
		if again := fetch(t, catalogue.FetchOptions{Store: store, Mirror: mirror}); again.Dir != p.Dir ||
			again.Source != s.URL {
			t.Errorf("%+v", again)
		}
	}
}

func TestFetchFromAFolder(t *testing.T) {
	dir, store := tinyMirror(t), catalogue.Store(t.TempDir())
	p := fetch(t, catalogue.FetchOptions{Store: store, Mirror: dir})
	equal(t, p, dir)
	if _, f := p.Library(); p.Source != dir || f.From != filepath.Join(dir, filepath.FromSlash(libraryPath)) {
		t.Errorf("%+v", p)
	}
	check.Err(t, os.Remove(filepath.Join(dir, filepath.FromSlash(libraryPath))))
	refused(t, catalogue.FetchOptions{Store: catalogue.Store(t.TempDir()), Mirror: dir},
		"cannot download lib.wasm from "+filepath.Join(dir, filepath.FromSlash(libraryPath)), "Not Found",
		"omit --mirror")
}

// The public hosts are a server here.
func TestFetchFromThePublicAddresses(t *testing.T) {
	dir := tinyMirror(t)
	var mu sync.Mutex
	hosts := map[string]string{}
	files := &server{dir: dir, asked: map[string]int{}, sent: map[string]int64{}}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		hosts[r.URL.Path] = r.Host
		mu.Unlock()
		if r.Host == "huggingface.co" { // redirects as the real one does
			http.Redirect(w, r, "https://cdn.example"+r.URL.Path, http.StatusFound)
			return
		}
		files.ServeHTTP(w, r)
	}))
	defer s.Close()
	o := catalogue.FetchOptions{Store: catalogue.Store(t.TempDir()), Transport: dialing(s)}
	p := fetch(t, o)
	equal(t, p, dir)
	if p.Source != "" || hosts[packagePath+"params_shard_0.bin"] != "cdn.example" ||
		hosts[libraryPath] != "raw.githubusercontent.com" {
		t.Errorf("%q: %v", p.Source, hosts)
	}
}

// dialing is a transport for which every host is s.
func dialing(s *httptest.Server) *http.Transport {
	return &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // it has no certificate for other hosts
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
		},
	}
}

// refused checks that a fetch fails with one line that has these words.
func refused(t *testing.T, o catalogue.FetchOptions, words ...string) {
	t.Helper()
	_, err := catalogue.Fetch(t.Context(), entry(t), o.Impatient(), nil)
	failed(t, err, fault.Download, words...)
	if _, err := catalogue.Open(o.Store, id); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is in the store: %v", err)
	}
}

func failed(t *testing.T, err error, kind fault.Kind, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want %q", words)
	}
	if fault.Of(err) != kind || strings.Contains(err.Error(), "\n") {
		t.Errorf("class %s, want %s: %v", fault.Of(err), kind, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is missing in: %v", word, err)
		}
	}
}

// always answers every request for a file.
func always(name string, answer http.HandlerFunc) func(http.ResponseWriter, *http.Request, string, int) bool {
	return func(w http.ResponseWriter, r *http.Request, file string, _ int) bool {
		if file == name {
			answer(w, r)
		}
		return file == name
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }
}

func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write([]byte(text))
	}
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
}

func TestServerErrors(t *testing.T) {
	dir := randomMirror(t)
	const shard = "params_shard_3.bin"
	other := bytes.Repeat([]byte("x"), shardSize)
	for _, c := range []struct {
		name     string
		trouble  func(w http.ResponseWriter, r *http.Request, file string, n int) bool
		words    []string
		requests int // for the file
		file     string
	}{
		{"no such model", always("mlc-chat-config.json", status(404)),
			[]string{id, "mlc-chat-config.json", "404 Not Found", "omit --mirror"}, 1, "mlc-chat-config.json"},
		{"no list of weights", func(w http.ResponseWriter, r *http.Request, file string, n int) bool {
			return always("tensor-cache.json", status(404))(w, r, file, n) ||
				always("ndarray-cache.json", status(404))(w, r, file, n)
		}, []string{"tensor-cache.json", "404"}, 1, "ndarray-cache.json"},
		{"not allowed", always(shard, status(403)), []string{shard, packagePath + shard, "403 Forbidden"}, 1, shard},
		{"broken server", always(shard, status(500)),
			[]string{shard, "500 Internal Server Error", "tried 5 times", "are kept"}, 5, shard},
		{"wrong bytes", always(shard, body(string(other))), []string{shard, "MD5", "correct the mirror"}, 1, shard},
		{"too short", always(shard, body(string(other[1:]))), []string{shard, "1572864", "1572863"}, 1, shard},
		{"too long", always(shard, body(string(other)+"x")), []string{shard, "the server sends more than"}, 1, shard},
		{"a page for a list", always("tensor-cache.json", body("<!doctype html>")),
			[]string{"tensor-cache.json", "invalid character"}, 1, "tensor-cache.json"},
		{"a page for the library", always(filepath.Base(libraryPath), body("<!doctype html>")),
			[]string{"lib.wasm", libraryPath, "not a WebAssembly module"}, 1, filepath.Base(libraryPath)},
		{"a page for the configuration", always("mlc-chat-config.json", body("{}")),
			[]string{"mlc-chat-config.json", "model_type"}, 1, "mlc-chat-config.json"},
		{"unsafe redirection", always(shard, redirect("http://192.0.2.1/x")),
			[]string{shard, "redirected to http://192.0.2.1/x", "only https"}, 1, shard},
		{"redirection in circles", func(w http.ResponseWriter, r *http.Request, file string, n int) bool {
			return always(shard, redirect(r.URL.Path))(w, r, file, n)
		}, []string{shard, "there were 10 before"}, 10, shard},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, dir)
			s.misbehave(c.trouble)
			refused(t, catalogue.FetchOptions{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}, c.words...)
			if s.times(c.file) != c.requests {
				t.Errorf("%d requests for %s, want %d", s.times(c.file), c.file, c.requests)
			}
		})
	}
}

func TestCutConnection(t *testing.T) {
	dir := randomMirror(t)
	const shard = "params_shard_2.bin"
	bytes := func(after int) func(int) int { return func(int) int { return after } }
	for _, c := range []struct {
		name  string
		cuts  int
		after func(n int) int
		plain bool     // Range is ignored
		words []string // of the error; nil: none
		extra int64    // bytes sent twice
	}{
		{"resumes", 3, bytes(1000), false, nil, 0},
		{"more tries after much data", 8, func(n int) int {
			if n == 5 {
				return 5 << 18
			}
			return 1000
		}, false, nil, 0},
		{"starts again without Range", 2, bytes(1 << 20), true, nil, 2 << 20},
		{"gives up", 99, bytes(1000), true,
			[]string{shard, "cut after 1000 of 1572864 bytes", "tried 5 times", "try again"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, dir)
			s.misbehave(func(w http.ResponseWriter, r *http.Request, file string, n int) bool {
				if c.plain {
					r.Header.Del("Range")
				}
				if file == shard && n <= c.cuts {
					s.cutAfter(w, r, c.after(n))
				}
				return false
			})
			o := catalogue.FetchOptions{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}
			if c.words != nil {
				refused(t, o, c.words...)
				return
			}
			equal(t, fetch(t, o), dir)
			if sent := s.shardsSent(); sent > shards*shardSize+c.extra || s.times(shard) != c.cuts+1 {
				t.Errorf("%d bytes of shards were sent for %d, in %d requests", sent, shards*shardSize, s.times(shard))
			}
		})
	}
}

func TestStalledServer(t *testing.T) {
	dir := tinyMirror(t)
	s := serve(t, dir)
	s.misbehave(func(w http.ResponseWriter, r *http.Request, file string, n int) bool {
		if stalls := file == "tokenizer.json" && n == 1; !stalls {
			return false
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // until the client gives up
		return true
	})
	p, err := catalogue.Fetch(t.Context(), entry(t),
		catalogue.FetchOptions{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}.Stalling(time.Second), nil)
	check.Err(t, err)
	equal(t, p, dir)
	if s.times("tokenizer.json") != 2 {
		t.Errorf("%v", s.asked)
	}
}

// A shard that changes between two fetches is not joined with its old beginning.
func TestAnotherVersionWhileFetching(t *testing.T) {
	dir := randomMirror(t)
	const shard = "params_shard_4.bin"
	s := serve(t, dir)
	s.misbehave(func(w http.ResponseWriter, r *http.Request, file string, _ int) bool {
		if file == shard {
			s.cutAfter(w, r, 1<<18)
		}
		return false
	})
	o := catalogue.FetchOptions{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}
	refused(t, o, shard, "cut")
	s.misbehave(nil)
	newer := bytes.Repeat([]byte("12345678"), shardSize/8)
	put(t, filepath.Join(dir, filepath.FromSlash(packagePath), shard), newer)
	refused(t, o, shard, "MD5") // the list is still the old one
	changeList(t, dir, func(shards []mlc.Shard) { shards[4].MD5 = fmt.Sprintf("%x", md5.Sum(newer)) })
	s.reset()
	equal(t, fetch(t, o), dir)
	if s.times("params_shard_0.bin") != 0 {
		t.Errorf("%v", s.asked)
	}
}

func TestTheOlderListOfWeights(t *testing.T) {
	dir := randomMirror(t)
	place := filepath.Join(dir, filepath.FromSlash(packagePath))
	check.Err(t, os.Rename(filepath.Join(place, "tensor-cache.json"),
		filepath.Join(place, "ndarray-cache.json")))
	equal(t, fetch(t, catalogue.FetchOptions{Store: catalogue.Store(t.TempDir()), Mirror: dir}), dir)
}

// A cancelled fetch resumes: complete shards and the beginning of the last one are not downloaded again.
func TestFetchResumes(t *testing.T) {
	dir := randomMirror(t)
	s := serve(t, dir)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	s.misbehave(func(w http.ResponseWriter, r *http.Request, file string, _ int) bool {
		if file == "params_shard_4.bin" {
			s.send(&stopping{w, 1 << 20, func() { cancel(enough); <-r.Context().Done() }}, r)
		}
		return file == "params_shard_4.bin"
	})
	o := catalogue.FetchOptions{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}
	if _, err := catalogue.Fetch(ctx, entry(t), o.Impatient(), nil); !errors.Is(err, enough) {
		t.Error(err)
	}
	files, err := filepath.Glob(filepath.Join(o.Store, ".fetching-"+id, "params_shard_*"))
	check.Err(t, err)
	var have int64
	for _, file := range files {
		info, err := os.Stat(file)
		check.Err(t, err)
		have += info.Size()
	}
	s.misbehave(nil)
	s.reset()
	equal(t, fetch(t, o), dir)
	if s.shardsSent() != shards*shardSize-have || have < shardSize {
		t.Errorf("%d bytes were there, then %d of %d were sent", have, s.shardsSent(), shards*shardSize)
	}
}

func TestDamagedStoreIsRepaired(t *testing.T) {
	dir := randomMirror(t)
	s := serve(t, dir)
	o := catalogue.FetchOptions{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}
	p := fetch(t, o)
	const shard = "params_shard_1.bin"
	file := filepath.Join(p.Dir, shard)
	data := check.Read(t, file)
	data[7]++
	put(t, file, data)
	failed(t, p.Verify(t.Context()), fault.BadModel, shard, "SHA-256")
	library, _ := p.Library()
	whole := check.Read(t, library)
	changed := bytes.Clone(whole)
	changed[len(changed)-1]++
	put(t, library, changed)
	_, err := catalogue.Fetch(t.Context(), entry(t), o, nil)
	failed(t, err, fault.BadModel, catalogue.LibraryName, "SHA-256")
	put(t, library, whole)
	check.Err(t, os.Truncate(file, 99))
	if _, err := catalogue.Open(o.Store, id); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	s.reset()
	equal(t, fetch(t, o), dir)
	if s.shardsSent() != shardSize {
		t.Errorf("%d bytes of shards were sent to mend one", s.shardsSent())
	}
}

// From another mirror, only shards with another MD5 are downloaded, and all other files.
func TestAnotherSource(t *testing.T) {
	dir, store := randomMirror(t), catalogue.Store(t.TempDir())
	fetch(t, catalogue.FetchOptions{Store: store, Mirror: dir})
	other := randomMirror(t) // the same weights
	putJSON(t, filepath.Join(other, filepath.FromSlash(packagePath), "tokenizer.json"),
		map[string]any{"version": "2.0"})
	s := serve(t, other)
	p := fetch(t, catalogue.FetchOptions{Store: store, Mirror: s.URL})
	equal(t, p, other)
	if p.Source != s.URL || s.shardsSent() != 0 {
		t.Errorf("from %s, with %d bytes of shards sent", p.Source, s.shardsSent())
	}
}

func TestFullDisk(t *testing.T) {
	dir := randomMirror(t)
	changeList(t, dir, func(shards []mlc.Shard) {
		const much = 1 << 41
		shards[0].Bytes = much
		shards[0].Tensors = []mlc.Tensor{{Name: "a", Shape: []int64{much}, DType: "int8", Format: "raw",
			Bytes: much}}
	})
	s := serve(t, dir)
	_, err := catalogue.Fetch(t.Context(), entry(t),
		catalogue.FetchOptions{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}, nil)
	failed(t, err, fault.DiskFull, "2048.01 GiB", "needs", "free some space")
	if s.shardsSent() != 0 {
		t.Error("weights were fetched")
	}
}

func TestUnwritableStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, nil)
	_, err := catalogue.Fetch(t.Context(), entry(t),
		catalogue.FetchOptions{Store: catalogue.Store(file), Mirror: tinyMirror(t)}, nil)
	failed(t, err, fault.Unwritable, "LLMPARITY_CACHE")
}

func TestRefusedBeforeAnythingIsFetched(t *testing.T) {
	s := serve(t, t.TempDir())
	e, err := builtIn(t).Find("SmolLM2-135M-Instruct-q0f16-MLC")
	check.Err(t, err)
	_, err = catalogue.Fetch(t.Context(), e, catalogue.FetchOptions{Store: catalogue.Store(t.TempDir()), Mirror: s.URL,
		Features: []string{}}, nil)
	failed(t, err, fault.NoF16, e.ID, "shader-f16")
	if s.requests() != 0 {
		t.Errorf("%d requests", s.requests())
	}
	for _, mirror := range []string{"http://192.0.2.1/x", "https://", "ftp://127.0.0.1/", "https://h/?q",
		t.TempDir() + "/none",
		"https://\x00"} {
		_, err := catalogue.Fetch(t.Context(), e,
			catalogue.FetchOptions{Store: catalogue.Store(t.TempDir()), Mirror: mirror}, nil)
		failed(t, err, fault.Usage, "mirror")
	}
}

func TestFetchWithoutServer(t *testing.T) {
	s := serve(t, t.TempDir())
	s.Close()
	refused(t, catalogue.FetchOptions{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}, s.URL, "refused",
		"check the network")
	// Without a mirror: no host is found, as on a machine without a network.
	o := catalogue.FetchOptions{Store: catalogue.Store(t.TempDir()),
		Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp",
				Err: &net.DNSError{Err: "no such host", Name: "huggingface.co", IsNotFound: true}}
		}}}
	refused(t, o, "huggingface.co", "no such host", "check the network", "--mirror")
}

func TestProgress(t *testing.T) {
	s := serve(t, randomMirror(t))
	s.misbehave(func(w http.ResponseWriter, r *http.Request, file string, n int) bool {
		if file == "params_shard_1.bin" && n == 1 {
			s.cutAfter(w, r, 1000)
		}
		return false
	})
	var lines []string
	_, err := catalogue.Fetch(t.Context(), entry(t),
		catalogue.FetchOptions{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}.Impatient(),
		func(line string) { lines = append(lines, line) })
	check.Err(t, err)
	last := lines[len(lines)-1]
	if !strings.HasPrefix(last, "fetching "+id+": 7.5 MiB of 7.5 MiB, 9 of 9 files, ") || !slices.ContainsFunc(lines,
		func(line string) bool { return strings.Contains(line, "params_shard_1.bin: the connection was cut") }) {
		t.Errorf("%q", lines)
	}
}

func TestSizes(t *testing.T) {
	s := serve(t, randomMirror(t))
	models := builtIn(t).Models
	sizes, err := catalogue.Sizes(t.Context(), models, catalogue.FetchOptions{Mirror: s.URL})
	if err != nil || len(sizes) != 1 || sizes[id] != shards*shardSize {
		t.Errorf("%v, %v", sizes, err)
	}
	s.Close()
	_, err = catalogue.Sizes(t.Context(), models, catalogue.FetchOptions{Mirror: s.URL})
	failed(t, err, fault.Download, s.URL, "cannot be reached")
}

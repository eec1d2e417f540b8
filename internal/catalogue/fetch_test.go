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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"llmparity/internal/catalogue"
	"llmparity/internal/fault"
)

// fetch fetches the model that mirrors here have, and fails the test if that fails.
func fetch(t *testing.T, o catalogue.Options) catalogue.Package {
	t.Helper()
	p, err := catalogue.Fetch(t.Context(), entry(t), o.Impatient(), nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, p)
	return p
}

// same checks that the package is sound and whole.
func same(t *testing.T, p catalogue.Package) {
	t.Helper()
	if err := p.Verify(t.Context()); err != nil {
		t.Error(err)
	}
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
		a, err := os.ReadFile(want)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(p.Dir, f.Name)); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is not what the mirror has: %v", f.Name, err)
		}
	}
}

func TestFetchARealPackage(t *testing.T) {
	dir, store := tinyMirror(t), catalogue.Store(t.TempDir())
	s := serve(t, dir)
	p := fetch(t, catalogue.Options{Store: store, Mirror: s.URL + "/"})
	equal(t, p, dir)
	if p.Dir != filepath.Join(store, id) || p.Source != s.URL || p.Weights.Bytes() != 4*426624 ||
		p.Bytes() <= p.Weights.Bytes() {
		t.Errorf("%+v", p)
	}
	if s.requests() != len(p.Files) {
		t.Errorf("%d requests for %d files", s.requests(), len(p.Files))
	}
	// From now on neither network nor mirror is needed.
	s.Close()
	for _, mirror := range []string{"", s.URL} {
		if again := fetch(t, catalogue.Options{Store: store, Mirror: mirror}); again.Dir != p.Dir ||
			again.Source != s.URL {
			t.Errorf("%+v", again)
		}
	}
}

func TestFetchFromAFolder(t *testing.T) {
	dir, store := tinyMirror(t), catalogue.Store(t.TempDir())
	p := fetch(t, catalogue.Options{Store: store, Mirror: dir})
	equal(t, p, dir)
	if _, f := p.Library(); p.Source != dir || f.From != filepath.Join(dir, filepath.FromSlash(libraryPath)) {
		t.Errorf("%+v", p)
	}
	if err := os.Remove(filepath.Join(dir, filepath.FromSlash(libraryPath))); err != nil {
		t.Fatal(err)
	}
	refused(t, catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: dir},
		"lib.wasm can't be had from "+filepath.Join(dir, filepath.FromSlash(libraryPath)), "not found",
		"leave --mirror out")
	if err := os.Mkdir(filepath.Join(dir, filepath.FromSlash(libraryPath)), 0o755); err != nil {
		t.Fatal(err)
	}
	refused(t, catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: dir}, "lib.wasm", "it is a folder")
}

// TestFetchFromThePublicAddresses lets both hosts be servers here: what is asked of whom is what the catalogue says.
func TestFetchFromThePublicAddresses(t *testing.T) {
	dir := tinyMirror(t)
	var mu sync.Mutex
	hosts := map[string]string{}
	files := &server{dir: dir, asked: map[string]int{}, sent: map[string]int64{}}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		hosts[r.URL.Path] = r.Host
		mu.Unlock()
		if r.Host == "huggingface.co" { // which sends weights from elsewhere
			http.Redirect(w, r, "https://cdn.example"+r.URL.Path, http.StatusFound)
			return
		}
		files.ServeHTTP(w, r)
	}))
	defer s.Close()
	o := catalogue.Options{Store: catalogue.Store(t.TempDir()), Transport: dialing(s)}
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

// refused wants a fetch to fail, in one line that has these words.
func refused(t *testing.T, o catalogue.Options, words ...string) {
	t.Helper()
	_, err := catalogue.Fetch(t.Context(), entry(t), o.Impatient(), nil)
	failed(t, err, fault.Download, words...)
	if _, err := catalogue.Open(o.Store, id); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is in the store all the same: %v", err)
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

// always answers every request for a file so.
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
		requests int // for the file in question; 0: not looked at
		file     string
	}{
		{"no such model", always("mlc-chat-config.json", status(404)),
			[]string{id, "mlc-chat-config.json", "404 Not Found", "leave --mirror out"}, 1, "mlc-chat-config.json"},
		{"no list of weights", func(w http.ResponseWriter, r *http.Request, file string, n int) bool {
			return always("tensor-cache.json", status(404))(w, r, file, n) ||
				always("ndarray-cache.json", status(404))(w, r, file, n)
		}, []string{"tensor-cache.json", "404"}, 1, "ndarray-cache.json"},
		{"missing shard", always(shard, status(404)), []string{shard, packagePath + shard, "404 Not Found"}, 1, shard},
		{"not allowed", always(shard, status(403)), []string{shard, "403 Forbidden"}, 1, shard},
		{"broken server", always(shard, status(500)),
			[]string{shard, "500 Internal Server Error", "tried 5 times", "what was fetched is kept"}, 5, shard},
		{"wrong bytes", always(shard, body(string(other))), []string{shard, "is wrong", "MD5", "mend the mirror"},
			1, shard},
		{"too short", always(shard, body(string(other[1:]))), []string{shard, "1572864 bytes", "1572863"}, 1, shard},
		{"too long", always(shard, body(string(other)+"x")), []string{shard, "1572864 bytes", "1572865"}, 1, shard},
		{"too long, of unknown length", always(shard, func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(append(other, 'x'))
		}), []string{shard, "the server sends more than"}, 1, shard},
		{"too short, of unknown length", always(shard, func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(other[1:])
		}), []string{shard, "1572864 bytes", "1572863"}, 1, shard},
		{"compressed", always(shard, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(other)
		}), []string{shard, "gzip"}, 1, shard},
		{"a page for a list", always("tensor-cache.json", body("<!doctype html>")),
			[]string{"tensor-cache.json", "is wrong", "invalid character"}, 1, "tensor-cache.json"},
		{"a page for the library", always(filepath.Base(libraryPath), body("<!doctype html>")),
			[]string{"lib.wasm", libraryPath, "not a WebAssembly module"}, 1, ""},
		{"a page for the settings", always("mlc-chat-config.json", body("{}")),
			[]string{"mlc-chat-config.json", "model_type"}, 1, ""},
		{"leads away", always(shard, redirect("http://192.0.2.1/x")),
			[]string{shard, "redirected to http://192.0.2.1/x", "only https"},
			1, shard},
		{"leads to files", always(shard, redirect("file:///etc/passwd")),
			[]string{shard, "redirected to file:///etc/passwd"}, 1,
			shard},
		{"leads in circles", func(w http.ResponseWriter, r *http.Request, file string, n int) bool {
			return always(shard, redirect(r.URL.Path))(w, r, file, n)
		}, []string{shard, "there were 10 before"}, 0, shard},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, dir)
			s.misbehave(c.trouble)
			refused(t, catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}, c.words...)
			if c.file != "" && c.requests > 0 && s.times(c.file) != c.requests {
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
		name        string
		cuts        int
		after       func(n int) int
		plain       bool // Range is ignored
		unversioned bool
		words       []string // of the failure; nil: there is none
		extra       int64    // bytes that have to be sent twice at most
	}{
		{"goes on", 3, bytes(1000), false, false, nil, 0},
		{"goes on without a version", 3, bytes(1000), false, true, nil, 0},
		{"is forgiven where much came", 8, func(n int) int {
			if n == 5 {
				return 5 << 18
			}
			return 1000
		}, false, false, nil, 0},
		{"begins again where Range is ignored", 2, bytes(1 << 20), true, false, nil, 2 << 20},
		{"is given up", 99, bytes(1000), true, false,
			[]string{shard, "cut after 1000 of 1572864 bytes", "tried 5 times", "try again"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, dir)
			s.unversioned = c.unversioned
			s.misbehave(func(w http.ResponseWriter, r *http.Request, file string, n int) bool {
				if c.plain {
					r.Header.Del("Range")
				}
				if file == shard && n <= c.cuts {
					s.cutAfter(w, r, c.after(n))
				}
				return false
			})
			o := catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}
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

func TestServerRecovers(t *testing.T) {
	dir := randomMirror(t)
	s := serve(t, dir)
	s.misbehave(func(w http.ResponseWriter, r *http.Request, _ string, n int) bool {
		if n <= 2 {
			http.Error(w, "later", []int{503, 429}[n-1])
		}
		return n <= 2
	})
	equal(t, fetch(t, catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}), dir)
}

func TestSlowServer(t *testing.T) {
	dir := tinyMirror(t)
	s := serve(t, dir)
	s.misbehave(func(w http.ResponseWriter, r *http.Request, file string, n int) bool {
		if file == "tokenizer.json" && n == 1 {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done() // says nothing until we go away
			return true
		}
		if file == "params_shard_0.bin" {
			s.send(slow{w}, r)
			return true
		}
		return false
	})
	p, err := catalogue.Fetch(t.Context(), entry(t),
		catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}.Stalling(2*time.Second), nil)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, p, dir)
	if s.times("tokenizer.json") != 2 || s.times("params_shard_0.bin") != 1 {
		t.Errorf("%v", s.asked)
	}
}

// slow writes in pieces, with a pause between them.
type slow struct{ http.ResponseWriter }

func (s slow) Write(b []byte) (int, error) {
	n, err := s.ResponseWriter.Write(b)
	_ = http.NewResponseController(s.ResponseWriter).Flush()
	time.Sleep(10 * time.Millisecond)
	return n, err
}

func (s slow) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// TestAnotherVersionWhileFetching changes a shard and its list between two fetches: what was there is not joined with
// it.
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
	o := catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}
	refused(t, o, shard, "cut")
	s.misbehave(nil)
	newer := bytes.Repeat([]byte("12345678"), shardSize/8)
	put(t, filepath.Join(dir, filepath.FromSlash(packagePath), shard), newer)
	// The list that was fetched is older than the shard: that is told, and the next time both are new.
	refused(t, o, shard, "MD5")
	changeList(t, dir, func(w *catalogue.Weights) { w.Shards[4].MD5 = fmt.Sprintf("%x", md5.Sum(newer)) })
	s.reset()
	equal(t, fetch(t, o), dir)
	if s.times("params_shard_0.bin") != 0 || s.times("tensor-cache.json") != 1 {
		t.Errorf("%v", s.asked)
	}
}

func TestInvalidPackage(t *testing.T) {
	dir := randomMirror(t)
	changeList(t, dir, func(w *catalogue.Weights) { w.Shards[1].Tensors[0].Shape = []int64{7} })
	s := serve(t, dir)
	refused(t, catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}, "tensor-cache.json",
		`"a1" is uint32 [7]`)
	if s.shardsSent() != 0 {
		t.Errorf("weights were fetched all the same")
	}
}

func TestTheOlderListOfWeights(t *testing.T) {
	dir := randomMirror(t)
	place := filepath.Join(dir, filepath.FromSlash(packagePath))
	if err := os.Rename(filepath.Join(place, "tensor-cache.json"),
		filepath.Join(place, "ndarray-cache.json")); err != nil {
		t.Fatal(err)
	}
	equal(t, fetch(t, catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: dir}), dir)
}

func TestSeveralAtOnce(t *testing.T) {
	dir := randomMirror(t)
	s := serve(t, dir)
	o := catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}.Impatient()
	e := entry(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			p, err := catalogue.Fetch(t.Context(), e, o, nil)
			if err != nil {
				t.Error(err)
				return
			}
			same(t, p)
		})
	}
	all.Wait()
	for file, n := range s.asked {
		if n != 1 {
			t.Errorf("%s was asked for %d times", file, n)
		}
	}
}

// shardsIn is how many bytes of shards are in a folder, whole or not.
func shardsIn(t *testing.T, dir string) (n int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "params_shard_*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, ".json") {
			n += info.Size()
		}
	}
	return n
}

// stopping calls stop when so much was written, and waits for the connection's end.
type stopping struct {
	http.ResponseWriter
	left int
	stop func()
}

func (s *stopping) Write(b []byte) (int, error) {
	n, err := s.ResponseWriter.Write(b)
	if s.left -= n; s.left <= 0 {
		_ = http.NewResponseController(s.ResponseWriter).Flush()
		s.stop()
	}
	return n, err
}

func (s *stopping) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func TestDamagedStoreIsRepaired(t *testing.T) {
	dir := randomMirror(t)
	s := serve(t, dir)
	o := catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}
	p := fetch(t, o)
	const shard = "params_shard_1.bin"
	file := filepath.Join(p.Dir, shard)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[7]++
	put(t, file, data)
	failed(t, p.Verify(t.Context()), fault.BadModel, shard, "SHA-256")
	library, _ := p.Library()
	whole, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(whole)
	changed[len(changed)-1]++
	put(t, library, changed)
	_, err = catalogue.Fetch(t.Context(), entry(t), o, nil)
	failed(t, err, fault.BadModel, catalogue.LibraryName, "SHA-256")
	put(t, library, whole)
	if err := os.Truncate(file, 99); err != nil {
		t.Fatal(err)
	}
	if _, err := catalogue.Open(o.Store, id); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	s.reset()
	equal(t, fetch(t, o), dir)
	if s.shardsSent() != shardSize {
		t.Errorf("%d bytes of shards were sent to mend one", s.shardsSent())
	}
}

// TestAnotherSource takes from another mirror what the store hasn't, and takes nothing of the store's for it that it
// can't prove.
func TestAnotherSource(t *testing.T) {
	dir, store := randomMirror(t), catalogue.Store(t.TempDir())
	fetch(t, catalogue.Options{Store: store, Mirror: dir})
	other := randomMirror(t) // the same weights
	putJSON(t, filepath.Join(other, filepath.FromSlash(packagePath), "tokenizer.json"),
		map[string]any{"version": "2.0"})
	s := serve(t, other)
	p := fetch(t, catalogue.Options{Store: store, Mirror: s.URL})
	equal(t, p, other)
	if p.Source != s.URL || s.shardsSent() != 0 {
		t.Errorf("from %s, with %d bytes of shards sent", p.Source, s.shardsSent())
	}
}

func TestFullDisk(t *testing.T) {
	dir := randomMirror(t)
	changeList(t, dir, func(w *catalogue.Weights) {
		const much = 1 << 41
		w.Shards[0].Bytes = much
		w.Shards[0].Tensors = []catalogue.Tensor{{Name: "a", Shape: []int64{much}, DType: "int8", Format: "raw",
			Bytes: much}}
	})
	s := serve(t, dir)
	_, err := catalogue.Fetch(t.Context(), entry(t),
		catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}, nil)
	failed(t, err, fault.DiskFull, "2048.0 GiB", "has room for")
	if s.shardsSent() != 0 {
		t.Error("weights were fetched all the same")
	}
}

func TestUnwritableStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, nil)
	_, err := catalogue.Fetch(t.Context(), entry(t),
		catalogue.Options{Store: catalogue.Store(file), Mirror: tinyMirror(t)}, nil)
	failed(t, err, fault.Unwritable, "LLMPARITY_CACHE")
}

func TestRefusedBeforeAnythingIsFetched(t *testing.T) {
	s := serve(t, t.TempDir())
	e, err := builtIn(t).Find("SmolLM2-135M-Instruct-q0f16-MLC")
	if err != nil {
		t.Fatal(err)
	}
	_, err = catalogue.Fetch(t.Context(), e, catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: s.URL,
		Features: []string{}}, nil)
	failed(t, err, fault.NoF16, e.ID, "shader-f16")
	if s.requests() != 0 {
		t.Errorf("%d requests", s.requests())
	}
	for _, mirror := range []string{"http://192.0.2.1/x", "https://", "ftp://127.0.0.1/", "https://h/?q",
		t.TempDir() + "/none",
		"https://\x00"} {
		_, err := catalogue.Fetch(t.Context(), e,
			catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: mirror}, nil)
		failed(t, err, fault.Usage, "mirror")
	}
}

func TestFetchWithoutServer(t *testing.T) {
	s := serve(t, t.TempDir())
	s.Close()
	refused(t, catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}, s.URL, "refused",
		"check the mirror's address")
	// Without a mirror: no host is found, as on a machine without a network.
	o := catalogue.Options{Store: catalogue.Store(t.TempDir()),
		Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp",
				Err: &net.DNSError{Err: "no such host", Name: "huggingface.co", IsNotFound: true}}
		}}}
	refused(t, o, "huggingface.co", "no such host", "check the network", "--mirror")
}

func TestProgress(t *testing.T) {
	dir := randomMirror(t)
	s := serve(t, dir)
	s.misbehave(func(w http.ResponseWriter, r *http.Request, file string, n int) bool {
		if file == "params_shard_1.bin" && n == 1 {
			s.cutAfter(w, r, 1000)
		}
		return false
	})
	var last catalogue.Progress
	var notes, lines []string
	tell := catalogue.Lines(func(line string) { lines = append(lines, line) }, time.Hour)
	p, err := catalogue.Fetch(t.Context(), entry(t),
		catalogue.Options{Store: catalogue.Store(t.TempDir()), Mirror: s.URL}.Impatient(), func(p catalogue.Progress) {
			tell(p)
			if p.Note != "" {
				notes = append(notes, p.Note)
				return
			}
			if p.Done < last.Done || p.Bytes < last.Bytes || p.Total > 0 && p.Bytes > p.Total {
				t.Errorf("%+v after %+v", p, last)
			}
			last = p
		})
	if err != nil {
		t.Fatal(err)
	}
	if last.Bytes != last.Total || last.Total != p.Bytes() || last.Done != last.Files || last.Files != len(p.Files) {
		t.Errorf("%+v at the end", last)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "params_shard_1.bin") ||
		!strings.Contains(notes[0], "trying again") {
		t.Errorf("%q", notes)
	}
	if len(lines) != 3 || !strings.HasPrefix(lines[2], "fetching "+id+": 7.5 MiB") ||
		!strings.Contains(lines[2], "9 of 9 files") {
		t.Errorf("%q", lines)
	}
}

func TestSizes(t *testing.T) {
	s := serve(t, randomMirror(t))
	models := builtIn(t).Models
	sizes, err := catalogue.Sizes(t.Context(), models, catalogue.Options{Mirror: s.URL})
	if err != nil || len(sizes) != 1 || sizes[id] != shards*shardSize {
		t.Errorf("%v, %v", sizes, err)
	}
	s.Close()
	_, err = catalogue.Sizes(t.Context(), models, catalogue.Options{Mirror: s.URL})
	failed(t, err, fault.Download, s.URL, "can't be reached")
}

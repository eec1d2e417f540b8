package mlc

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	cachedir "llmparity/internal/cache"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/tiny"
)

// asConverter says that this process, a test's own program, is to write packages: from where, and to where.
const asConverter = "MLC_TEST_CONVERTER"

func TestMain(m *testing.M) {
	if paths := os.Getenv(asConverter); paths != "" {
		from, to, _ := strings.Cut(paths, "\n")
		for {
			_, err := Write(context.Background(), from, to, Options{})
			fmt.Println("wrote", err)
			if err != nil {
				os.Exit(1)
			}
		}
	}
	os.Exit(m.Run())
}

// converter starts a process of its own that writes a package again and again, until the test ends.
func converter(t *testing.T, from, to string) (kill func(), said *bytes.Buffer) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	said = new(bytes.Buffer)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), asConverter+"="+from+"\n"+to)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	return kill, said
}

// randomFile writes a model that takes a while to convert.
func randomFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := tiny.WriteRandomFile(t.Context(), path, tiny.Spec{Hidden: 256, Vocab: 2048}); err != nil {
		t.Fatal(err)
	}
	return path
}

// sound checks that a folder holds a package, each byte of its weights, and nothing else.
func sound(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "tensor-cache.json"))
	if err != nil {
		return err
	}
	var c cache
	if err := json.Unmarshal(b, &c); err != nil {
		return err
	}
	for _, s := range c.Records {
		data, err := os.ReadFile(filepath.Join(dir, s.File))
		if err != nil {
			return err
		}
		if sum := md5.Sum(data); hex.EncodeToString(sum[:]) != s.MD5 {
			return fmt.Errorf("%s has another hash", s.File)
		}
	}
	entries, err := os.ReadDir(dir)
	for errors.Is(err, fs.ErrNotExist) { // another package took its place while it was listed
		entries, err = os.ReadDir(dir)
	}
	if err == nil && len(entries) != len(c.Records)+3 {
		err = fmt.Errorf("%d files", len(entries))
	}
	return err
}

// Several processes and goroutines write one folder; whoever looks meanwhile finds a whole package, and none is left
// over.
func TestConvertersAtOnce(t *testing.T) {
	path, parent := randomFile(t), t.TempDir()
	dir := filepath.Join(parent, "package")
	var kills []func()
	for range 2 {
		kill, said := converter(t, path, dir)
		kills = append(kills, func() {
			kill()
			if strings.Contains(strings.ReplaceAll(said.String(), "wrote <nil>\n", ""), "wrote") {
				t.Errorf("a process says %s", said)
			}
		})
	}
	var writers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			for range 4 {
				if _, err := Write(t.Context(), path, dir, Options{}); err != nil {
					t.Error(err)
				}
				if err := sound(dir); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	for _, kill := range kills {
		kill()
	}
	if err := sound(dir); err != nil {
		t.Error(err)
	}
	if _, err := Write(t.Context(), path, dir, Options{}); err != nil { // which sweeps what the killed ones left
		t.Error(err)
	}
	alone(t, parent, "package")
}

func TestPublishLeavesOtherFoldersAlone(t *testing.T) {
	parent := t.TempDir()
	dir, from := filepath.Join(parent, "package"), filepath.Join(parent, ".new")
	for _, d := range []string{dir, from} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := publish(from, dir); err != nil { // an empty one is no harm
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "letters.txt"), []byte("a letter"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := publish(from, dir); fault.Of(err) != fault.Unwritable {
		t.Errorf("got %v, want a fault of kind Unwritable", err)
	}
	alone(t, dir, "letters.txt")
}

// Where two folders can't be exchanged in one step.
func TestMovingAside(t *testing.T) {
	parent := t.TempDir()
	to, old := filepath.Join(parent, "package"), filepath.Join(parent, ".x.old")
	for _, d := range []string{to, old} {
		if err := os.MkdirAll(filepath.Join(d, "inside"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time nothing is there any more
		if err := moveAside(to, old); err != nil {
			t.Fatal(err)
		}
	}
	alone(t, parent)
}

func TestModelChangesWhileRead(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"longer": func(path string) error {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteString("more")
				f.Close()
			}
			return err
		},
		"shorter": func(path string) error { return os.Truncate(path, 500_000) },
		"another time": func(path string) error {
			return os.Chtimes(path, time.Time{}, time.Now().Add(time.Second))
		},
	} {
		path := randomFile(t)
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := newModel(f, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		_, err = m.write(t.Context(), t.TempDir())
		if fault.Of(err) != fault.BadModel ||
			!strings.Contains(err.Error(),
				"the file changed while it was read; wait until it is complete, then try again") {
			t.Errorf("%s: got %v", name, err)
		}
		f.Close()
	}
	// And while one who writes the file goes on.
	path, parent := randomFile(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for ctx.Err() == nil {
			_ = os.Chtimes(path, time.Time{}, time.Now())
		}
	})
	_, err := Write(t.Context(), path, filepath.Join(parent, "package"), Options{})
	cancel()
	writer.Wait()
	if fault.Of(err) != fault.BadModel || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("got %v", err)
	}
	alone(t, parent)
}

// A full disk is had from /dev/full, which takes no byte.
func TestFullDisk(t *testing.T) {
	for _, name := range []string{"params_shard_0.bin", "tensor-cache.json", tokenizerName, configName} {
		f, err := gguf.Open(randomFile(t))
		if err != nil {
			t.Fatal(err)
		}
		m, err := newModel(f, Options{})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.Symlink("/dev/full", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		_, err = m.write(t.Context(), dir)
		if err = unwritable(err, dir); fault.Of(err) != fault.DiskFull ||
			!strings.Contains(err.Error(), "no space left on device") {
			t.Errorf("%s: got %v (%s)", name, err, fault.Of(err))
		}
		f.Close()
	}
}

// A model that takes another one's place after it was looked at is not converted in its name.
func TestRefusesReplacedModel(t *testing.T) {
	path, parent := randomFile(t), t.TempDir()
	sum, err := cachedir.HashFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "package")
	if _, err := Write(t.Context(), path, dir, Options{SHA256: sum}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-1] ^= 1 // as large, and of the same shape: no more than a weight's last digit
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	_, err = Write(t.Context(), path, dir, Options{SHA256: sum})
	if fault.Of(err) != fault.BadModel || !strings.Contains(err.Error(), path+" was replaced") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	alone(t, parent)
}

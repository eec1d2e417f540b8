package mlc

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cachedir "llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc/vocab"
	"llmparity/internal/models/tiny"
)

// randomFile writes a random model.
func randomFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	check.Err(t, tiny.WriteRandomFile(t.Context(), path, tiny.Spec{Hidden: 256, Vocab: 2048}))
	return path
}

// sound checks that a folder has a package with the right hashes, and nothing else.
func sound(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "tensor-cache.json"))
	if err != nil {
		return err
	}
	shards, err := ParseShards(b)
	if err != nil {
		return err
	}
	for _, s := range shards {
		data, err := os.ReadFile(filepath.Join(dir, s.File))
		if err != nil {
			return err
		}
		if sum := md5.Sum(data); hex.EncodeToString(sum[:]) != s.MD5 {
			return fmt.Errorf("%s has another hash", s.File)
		}
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) != len(shards)+3 {
		err = fmt.Errorf("%d files", len(entries))
	}
	return err
}

func TestModelChangesWhileRead(t *testing.T) {
	path := randomFile(t)
	f, err := gguf.Open(path)
	check.Err(t, err)
	defer f.Close()
	m, err := newModel(f, Options{})
	check.Err(t, err)
	check.Err(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)))
	_, err = m.write(t.Context(), t.TempDir())
	if fault.Of(err) != fault.BadModel || !strings.Contains(err.Error(),
		"the file changed while it was read; wait until it is complete, then try again") {
		t.Errorf("got %v", err)
	}
}

// Writes to /dev/full fail as on a full disk.
func TestFullDisk(t *testing.T) {
	for _, name := range []string{"params_shard_0.bin", "tensor-cache.json", vocab.Name, configName} {
		f, err := gguf.Open(randomFile(t))
		check.Err(t, err)
		m, err := newModel(f, Options{})
		check.Err(t, err)
		dir := t.TempDir()
		check.Err(t, os.Symlink("/dev/full", filepath.Join(dir, name)))
		_, err = m.write(t.Context(), dir)
		if err = unwritable(err, dir); fault.Of(err) != fault.DiskFull ||
			!strings.Contains(err.Error(), "no space left on device") {
			t.Errorf("%s: got %v (%s)", name, err, fault.Of(err))
		}
		f.Close()
	}
}

// A model that was replaced after it was hashed is not converted.
func TestRefusesReplacedModel(t *testing.T) {
	path, parent := randomFile(t), t.TempDir()
	sum, err := cachedir.HashFile(path)
	check.Err(t, err)
	dir := filepath.Join(parent, "package")
	if _, err := Write(t.Context(), path, dir, Options{SHA256: sum}); err != nil {
		t.Fatal(err)
	}
	check.Err(t, os.RemoveAll(dir))
	text := check.Read(t, path)
	text[len(text)-1] ^= 1 // one weight
	check.Err(t, os.WriteFile(path+".new", text, 0o644))
	check.Err(t, os.Rename(path+".new", path))
	_, err = Write(t.Context(), path, dir, Options{SHA256: sum})
	if fault.Of(err) != fault.BadModel || !strings.Contains(err.Error(), path+" was replaced") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	alone(t, parent)
}

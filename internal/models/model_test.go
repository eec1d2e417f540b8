package models

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/assets/bundle"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/catalogue"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/tiny"
	"llmparity/internal/record"
)

// id is one of WebLLM's catalogue.
const id = "SmolLM2-135M-Instruct-q0f32-MLC"

// finder finds in an empty cache, and fetches nothing.
func finder(t *testing.T) Finder {
	t.Helper()
	t.Setenv(cache.Variable, t.TempDir())
	return Finder{Say: func(string) {}, Features: func(context.Context) ([]string, error) {
		return nil, errors.New("there is no adapter")
	}, Catalogue: func() (catalogue.Catalogue, error) {
		text, err := bundle.Catalogue()
		if err != nil {
			return catalogue.Catalogue{}, err
		}
		return catalogue.Parse(text)
	}}
}

// models makes a GGUF and a package of the tiny model in a folder.
func models(t *testing.T) (file, folder string) {
	t.Helper()
	dir := t.TempDir()
	file, folder = filepath.Join(dir, "mine.gguf"), filepath.Join(dir, "mine-webllm")
	check.Err(t, tiny.WriteFile(file))
	if _, err := mlc.Write(t.Context(), file, folder, mlc.Options{}); err != nil {
		t.Fatal(err)
	}
	return file, folder
}

// Open says what llmparity cannot do with a GGUF, because other programs may still run it.
func TestOpenSaysWhatCannotBeUsed(t *testing.T) {
	file, _ := models(t)
	whole := check.Read(t, file)
	at := bytes.Index(whole, []byte("blk.0.attn_q.weight")) + len("blk.0.attn_q.weight") + 4 + 2*8
	for _, c := range []struct {
		name string
		edit func([]byte) []byte
		says [2]string // Unsupported and Unreadable
	}{
		{"as it is", func(b []byte) []byte { return b }, [2]string{}},
		{"known type", func(b []byte) []byte { b[at] = 26; return b }, [2]string{"", "blk.0.attn_q.weight is I32"}},
		{"unknown type", func(b []byte) []byte { b[at] = 200; return b }, [2]string{"is type 200", "is type 200"}},
		{"pre-tokenizer", func(b []byte) []byte {
			return bytes.Replace(b, []byte("tokenizer.ggml.pre"), []byte("tokenizer.ggml.prx"), 1)
		}, [2]string{"tokenizer.ggml.pre is missing"}},
		{"architecture", func(b []byte) []byte {
			return bytes.Replace(b, []byte("llama"), []byte("lemma"), 1)
		}, [2]string{`architecture "lemma" is not supported`}},
	} {
		path := filepath.Join(t.TempDir(), "m.gguf")
		check.Err(t, os.WriteFile(path, c.edit(bytes.Clone(whole)), 0o600))
		m, err := Open(t.Context(), path, 0)
		check.Err(t, err)
		for i, err := range []error{m.Unsupported, m.Unreadable} {
			if want := c.says[i]; (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", c.name, err, want)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, file, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v while a model is hashed", err)
	}
}

func TestFind(t *testing.T) {
	f := finder(t)
	file, folder := models(t)
	for _, c := range []struct {
		name         string
		window       int
		is           string
		format       string
		context, max int
	}{
		{Tiny, 0, tiny.Name, GGUF, 1024, 1024},
		{Tiny, 100, tiny.Name, GGUF, 100, 1024},
		{file, 0, tiny.Name, GGUF, 1024, 1024},
		{folder, 0, "mine-webllm", WebLLM, 1024, 1024},
		{folder + "/", 512, "mine-webllm", WebLLM, 512, 1024},
		{"served:llama3.2:1b", 4096, "llama3.2:1b", record.Served, 4096, 0},
	} {
		m, err := f.Find(t.Context(), c.name, c.window)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if m.Name != c.is || m.Format != c.format || m.Context != c.context || m.MaxContext != c.max {
			t.Errorf("%s: %+v", c.name, m.Model)
		}
		if c.format == record.Served {
			continue
		}
		if m.Layers != 2 || m.Vocab != 512 || m.WeightsB != 1706496 || m.Path == "" {
			t.Errorf("%s: %+v", c.name, m.Model)
		}
		if sum, err := SHA256(t.Context(), c.name); err != nil || sum != m.SHA256 {
			t.Errorf("%s: hash %s (%v), want %s", c.name, sum, err, m.SHA256)
		}
	}
	m, fetch, err := f.Look(t.Context(), id, 0)
	if err != nil || fetch == nil || !strings.Contains(fetch.What, id) || m.Path != "" || m.Format != WebLLM {
		t.Errorf("%s: %+v, %+v, %v", id, m.Model, fetch, err)
	}
}

func TestFindRefuses(t *testing.T) {
	f := finder(t)
	file, folder := models(t)
	text, empty := filepath.Join(t.TempDir(), "text.gguf"), t.TempDir()
	check.Err(t, os.WriteFile(text, []byte("no model at all, but a text"), 0o600))
	for _, c := range []struct {
		name, mirror string
		window       int
		kind         fault.Kind
		says         string
	}{
		{name: "nothing.gguf", kind: fault.BadModel, says: "nothing.gguf"},
		{name: text, kind: fault.BadModel, says: "not a GGUF"},
		{name: empty, kind: fault.BadModel, says: "not a valid WebLLM package"},
		{name: SmolLM2, kind: fault.BadModel, says: "scripts/setup smollm2"},
		{name: "tniy", kind: fault.UnknownModel, says: `no model "tniy"; did you mean "tiny"?`},
		{name: "SmolLM2-135M", kind: fault.UnknownModel, says: "the nearest are SmolLM2-135M"},
		{name: "snowflake-arctic-embed-s-q0f32-MLC-b4", kind: fault.UnknownModel, says: "embedding"},
		{name: "served:", kind: fault.Usage, says: "served:NAME"},
		{name: file, window: 2000, kind: fault.Usage, says: "maximum of 1024"},
		{name: folder, window: 2000, kind: fault.Usage, says: "maximum of 1024"},
		{name: file, mirror: "https://mirror.example", kind: fault.Usage, says: "--mirror"},
		{name: id, mirror: empty + "/none", kind: fault.Usage, says: "mirror"},
	} {
		f.Mirror = c.mirror
		_, err := f.Find(t.Context(), c.name, c.window)
		if fault.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: class %s: %v, want %s and %q", c.name, fault.Of(err), err, c.kind, c.says)
		}
	}
}

// Models of other tools are found by name, without copying; what is missing is said with the command that gets it.
func TestFindsModelsOfOtherTools(t *testing.T) {
	f := finder(t)
	hubDir, store := t.TempDir(), t.TempDir()
	t.Setenv("HF_HUB_CACHE", hubDir)
	t.Setenv("OLLAMA_MODELS", store)
	put := func(text string, parts ...string) {
		t.Helper()
		path := filepath.Join(parts...)
		check.Err(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)))
	}
	_, folder := models(t)
	one := filepath.Join(hubDir, "models--me--one")
	put("new", one, "refs", "main")
	put("config", one, "snapshots", "old", "config.json")
	for _, path := range []string{filepath.Join(one, "snapshots", "new", "sub", "m.gguf"),
		filepath.Join(hubDir, "models--me--two", "snapshots", "x", "a.gguf"),
		filepath.Join(hubDir, "models--me--two", "snapshots", "x", "b.gguf"),
		filepath.Join(store, "blobs", "sha256-12")} {
		put("", path)
		check.Err(t, tiny.WriteFile(path))
	}
	put("{}", hubDir, "models--me--raw", "snapshots", "x", "config.json")
	check.Err(t, os.MkdirAll(filepath.Join(hubDir, "models--me--mlc", "snapshots"), 0o755))
	check.Err(t, os.Rename(folder, filepath.Join(hubDir, "models--me--mlc", "snapshots", "x")))
	const layer = `{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:12"}`
	put(layer+`]}`, store, "manifests", "registry.ollama.ai", "library", "mine", "latest")
	put(layer+`]}`, store, "manifests", "hf.co", "me", "one", "Q4_0")
	put(layer+`,{"mediaType":"application/vnd.ollama.image.adapter","digest":"sha256:13"}]}`, store, "manifests",
		"registry.ollama.ai", "you", "adapted", "x")
	for _, c := range []struct{ name, format, err string }{
		{"hf:me/one", GGUF, ""}, {"me/one", GGUF, ""}, {"hf:me/one/sub/m.gguf", GGUF, ""},
		{"hf:me/two/b.gguf", GGUF, ""},
		{"hf:me/mlc", WebLLM, ""}, {"ollama:mine", GGUF, ""}, {"ollama:mine:latest", GGUF, ""},
		{"ollama:hf.co/me/one:Q4_0", GGUF, ""},
		{"hf:me/two", "", "has 2 GGUF files: a.gguf, b.gguf; name one, as in hf:me/two/a.gguf"},
		{"hf:me/two/c.gguf", "", "get it with: hf download me/two c.gguf"},
		{"me/none", "", "get it with: hf download me/none"}, {"hf:none", "", "write hf:ORG/NAME"},
		{"hf:me/raw", "", "has no model.safetensors"},
		{"ollama:none:1b", "", "get it with: ollama pull none:1b"}, {"ollama:../../x", "", "is not a name of Ollama's"},
		{"ollama:you/adapted:x", "", "has an adapter"},
	} {
		m, err := f.Find(t.Context(), c.name, 0)
		if c.err == "" && (err != nil || m.Format != c.format || m.Parameters == 0 && c.format == GGUF) ||
			c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %s of format %q (%v), want %q %s", c.name, m.Path, m.Format, err, c.format, c.err)
		}
		if c.err == "" {
			if sum, err := SHA256(t.Context(), c.name); err != nil || sum != m.SHA256 {
				t.Errorf("%s: hash %s, then %s (%v)", c.name, m.SHA256, sum, err)
			}
		}
	}
}

// A package that is damaged is refused, also if its GGUF is in the cache already.
func TestUnpackedRefusesDamagedPackage(t *testing.T) {
	f := finder(t)
	_, folder := models(t)
	m, err := f.Find(t.Context(), folder, 0)
	check.Err(t, err)
	shard := filepath.Join(folder, "params_shard_0.bin")
	right := check.Read(t, shard)
	wrong := bytes.Clone(right)
	wrong[len(wrong)/2] ^= 0x80
	for _, content := range [][]byte{wrong, right, wrong} {
		check.Err(t, os.WriteFile(shard, content, 0o600))
		of, err := f.Unpacked(t.Context(), m, false)
		if damaged := &content[0] == &wrong[0]; damaged != (err != nil && fault.Of(err) == fault.BadModel &&
			strings.Contains(err.Error(), "params_shard_0.bin is damaged: its MD5 is ")) {
			t.Errorf("damaged: %v, got %v, GGUF %v", damaged, err, of.GGUF)
		}
	}
}

// Files are compared by the values of their weights, once.
func TestCompareFindsSameWeights(t *testing.T) {
	f := finder(t)
	var said []string
	f.Say = func(line string) { said = append(said, line) }
	file, folder := models(t)
	half, other := filepath.Join(t.TempDir(), "half"), filepath.Join(t.TempDir(), "other.gguf")
	_, err := mlc.Write(t.Context(), file, half, mlc.Options{DType: mlc.Float16})
	check.Err(t, err)
	check.Err(t, tiny.WriteRandomFile(t.Context(), other, tiny.Spec{Seed: 7}))
	compared := func(names ...string) (forms []*Model) {
		for _, name := range names {
			m, err := f.Find(t.Context(), name, 0)
			check.Err(t, err)
			forms = append(forms, &m)
		}
		check.Err(t, f.Compare(t.Context(), forms))
		return forms
	}
	forms := compared(folder, file, half, other, "served:tiny")
	if a, b := forms[0], forms[1]; b.SameAs != a.SHA256 || b.Differs.Code != "" || a.Values() != b.Values() ||
		a.SHA256 == b.SHA256 {
		t.Errorf("the package %+v, its GGUF %+v", a.Model, b.Model)
	}
	for i, want := range []record.Relation{{}, {},
		{Code: record.OtherValues, Detail: "tensor blk.0.attn_k.weight differs: value "},
		{Code: record.OtherValues, Detail: "tensor "}, {Code: record.NotCompared, Detail: "there is no file"}} {
		m := forms[i]
		if is := m.Differs; is.Code != want.Code || !strings.HasPrefix(is.Detail, want.Detail) ||
			(m.SameAs != "") != (i == 1) {
			t.Errorf("%s: %q, same as %q; want %q", m.Name, is, m.SameAs, want)
		}
	}
	said = nil
	if again := compared(folder, file); again[1].SameAs != again[0].SHA256 || len(said) > 0 {
		t.Errorf("again: %+v; %q", again[1].Model, said)
	}
	if like := compared(other, folder, file); like[1].Differs.Code == "" || like[2].SameAs != like[1].SHA256 {
		t.Errorf("forms that are unlike the first: %+v, %+v", like[1].Model, like[2].Model)
	}
}

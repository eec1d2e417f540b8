package ollama

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/wire"
)

// depot is the set of models that llmparity created in the store of a server that it did not start. A note in the
// cache folder marks each one and has the pid of the process that will remove it. If that was killed, the next run that
// uses the model removes it.
type depot struct {
	client *client
	notes  string // folder

	mu   sync.Mutex
	made []string
}

func (c Config) depot(client *client) *depot {
	return &depot{client: client, notes: filepath.Join(c.Cache, "ollama", "left")}
}

// own returns the name of our model of a file.
func own(sum string) string { return "llmparity-" + sum[:12] }

// sumOf returns a model's hash, which is usually known.
func sumOf(m models.Model) (string, error) {
	if m.SHA256 != "" {
		return m.SHA256, nil
	}
	return cache.HashFile(m.Path)
}

// put makes sure that the server has a model of a file. If it has one already, nothing is uploaded.
func (d *depot) put(ctx context.Context, path, sum string) error {
	name := own(sum)
	had, err := d.client.ensure(ctx, name, sum, func() error {
		err := d.client.Call(ctx, http.MethodHead, "/api/blobs/sha256:"+sum, nil, nil)
		if absent(err) {
			err = d.client.upload(ctx, path, sum)
		}
		if err == nil {
			d.takeOver(name) // before it is created, so that a partial model is removed, too
		}
		return err
	})
	if had {
		note, _ := os.ReadFile(d.place(name)) // none: it is not ours
		maker, err := strconv.Atoi(string(note))
		if err == nil && maker > 0 && !child.Alive(maker) { // one of our processes that was killed
			d.takeOver(name)
		}
	}
	return err
}

// takeOver marks a model for removal by this process.
func (d *depot) takeOver(name string) {
	d.mu.Lock()
	d.made = append(d.made, name)
	d.mu.Unlock()
	if os.MkdirAll(d.notes, 0o755) == nil { // without a note the model stays if we are killed
		_ = os.WriteFile(d.place(name), []byte(strconv.Itoa(os.Getpid())), 0o600)
	}
}

func (d *depot) place(name string) string {
	server := sha256.Sum256([]byte(d.client.Base))
	return filepath.Join(d.notes, fmt.Sprintf("%s-%x.json", name, server[:6]))
}

// clear removes what was created. The error names what could not be removed.
func (d *depot) clear(ctx context.Context) error {
	d.mu.Lock()
	made := d.made
	d.made = nil
	d.mu.Unlock()
	var all []error
	for _, name := range made {
		err := d.client.Call(ctx, http.MethodDelete, "/api/delete", map[string]any{"model": name}, nil)
		if err != nil && !absent(err) { // else removed by another process, or never created
			all = append(all, fmt.Errorf(
				"model %s is still in the Ollama server's store; remove it with `ollama rm %s`: %w", name, name,
				err))
		} else {
			_ = os.Remove(d.place(name)) // a note without a model is harmless
		}
	}
	return errors.Join(all...)
}

// Prepare uploads the model to a server that is already running, so that no launch includes the upload. The model
// stays until Close.
func (o *Ollama) Prepare(ctx context.Context, m models.Model, say func(string)) error {
	if o.config.URL == "" || m.Format == record.Served {
		return nil
	}
	if err := o.config.Check(); err != nil {
		return err
	}
	sum, err := sumOf(m)
	if err != nil {
		return err
	}
	say("uploading " + m.Name + " to the Ollama server at " + o.config.URL)
	if err := o.depot.put(ctx, m.Path, sum); err != nil {
		if r := wire.RefusalOf(err); r != nil {
			return engine.SetUp(fault.New(fault.BadModel, "check the file, or use a newer Ollama",
				"the Ollama server at %s refuses %s: %s", o.config.URL, m.Path, fault.OneLine(r.Message)))
		}
		return fmt.Errorf("uploading %s to the Ollama server at %s: %w", m.Path, o.config.URL, err)
	}
	return nil
}

// Close removes what Prepare uploaded.
func (o *Ollama) Close() error {
	if o.depot == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return o.depot.clear(ctx)
}

package ollama

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"llmparity/internal/cache"
	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/native/wire"
)

// depot is what of ours lies in the store of a server that ran already: models that it made of files. Each has a note
// in the cache folder while it lies there, so that a model whose maker was killed is known for one of ours and goes
// with the next run that makes use of it.
type depot struct {
	client *client
	notes  string // the folder; empty: nothing is noted

	mu   sync.Mutex
	made []string
}

// note is what a file beside tells of a model in a server's store.
type note struct {
	Server string `json:"server"`
	Model  string `json:"model"`
	Maker  int    `json:"maker"` // the process that takes it out again
}

func (c Config) depot(client *client) *depot {
	d := &depot{client: client}
	if c.Cache != "" {
		d.notes = filepath.Join(c.Cache, "ollama", "left")
	}
	return d
}

// own gives the name of ours for a file.
func own(sum string) string { return "llmparity-" + sum[:12] }

// sumOf gives a model's sum, which is known as a rule.
func sumOf(m engine.Model) (string, error) {
	if m.SHA256 != "" {
		return m.SHA256, nil
	}
	return cache.HashFile(m.Path)
}

// put sees to it that the server has a model of a file, and gives it. One that it has already is taken as it is:
// nothing is uploaded.
func (d *depot) put(ctx context.Context, path, sum string) (listed, error) {
	name := own(sum)
	models, err := d.client.tags(ctx)
	if err != nil {
		return listed{}, err
	}
	if k, ok := find(models, name); ok {
		if d.abandoned(name) {
			d.takeOver(name)
		}
		return k, nil
	}
	has, err := d.client.hasBlob(ctx, sum)
	if err != nil {
		return listed{}, err
	}
	if !has {
		if err := d.client.upload(ctx, path, sum); err != nil {
			return listed{}, err
		}
	}
	d.takeOver(name) // before it is made: half of one is to be removed too
	if err := d.client.create(ctx, name, sum); err != nil {
		return listed{}, err
	}
	return d.client.known(ctx, name)
}

// takeOver makes it ours to remove.
func (d *depot) takeOver(name string) {
	d.mu.Lock()
	d.made = append(d.made, name)
	d.mu.Unlock()
	if d.notes == "" {
		return
	}
	text, err := json.Marshal(note{d.client.Base, name, os.Getpid()})
	if err == nil && os.MkdirAll(d.notes, 0o755) == nil {
		_ = os.WriteFile(d.place(name), text, 0o600) // without a note it stays behind if we are killed
	}
}

func (d *depot) place(name string) string {
	server := sha256.Sum256([]byte(d.client.Base))
	return filepath.Join(d.notes, fmt.Sprintf("%s-%x.json", name, server[:6]))
}

// abandoned tells whether one of ours made it who is no more.
func (d *depot) abandoned(name string) bool {
	if d.notes == "" {
		return false
	}
	text, err := os.ReadFile(d.place(name))
	var n note
	return err == nil && json.Unmarshal(text, &n) == nil && n.Server == d.client.Base && n.Model == name &&
		n.Maker > 0 && !child.Alive(n.Maker)
}

// clear takes out what was made. What stays is told by the error.
func (d *depot) clear(ctx context.Context) error {
	d.mu.Lock()
	made := d.made
	d.made = nil
	d.mu.Unlock()
	var all []error
	for _, name := range made {
		err := d.client.remove(ctx, name)
		if r := wire.RefusalOf(err); r != nil && r.Status == http.StatusNotFound {
			err = nil // somebody was quicker, or it never came to be
		}
		if err != nil {
			all = append(all, fmt.Errorf(
				"the model %s is still in the Ollama server's store (`ollama rm %s` takes it out): %w", name, name,
				err))
		} else if d.notes != "" {
			_ = os.Remove(d.place(name)) // a note of a model that is not there does no harm
		}
	}
	return errors.Join(all...)
}

// Prepare hands the model's file to a server that runs already, so that neither the upload nor its check is in a
// launch. The model stays until Close.
func (o *Ollama) Prepare(ctx context.Context, m engine.Model, say func(string)) error {
	if o.config.URL == "" || m.Format == record.Served {
		return nil
	}
	d, err := o.shared()
	if err != nil {
		return err
	}
	sum, err := sumOf(m)
	if err != nil {
		return err
	}
	say("handing " + m.Name + " to the Ollama server at " + o.config.URL)
	if _, err := d.put(ctx, m.Path, sum); err != nil {
		if r := wire.RefusalOf(err); r != nil {
			return engine.SetUp(fault.New(fault.BadModel, "check the file, or take a newer Ollama",
				"the Ollama server at %s does not take %s: %s", o.config.URL, m.Path,
				fault.OneLine(r.Message)))
		}
		return fmt.Errorf("handing %s to the Ollama server at %s: %w", m.Path, o.config.URL, err)
	}
	return nil
}

// shared is the depot of all that is done with the engine.
func (o *Ollama) shared() (*depot, error) {
	_, c, err := o.server()
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.depot == nil {
		o.depot = o.config.depot(c)
	}
	return o.depot, nil
}

// Close takes out of a server that runs already what Prepare put there.
func (o *Ollama) Close() error {
	o.mu.Lock()
	d := o.depot
	o.mu.Unlock()
	if d == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return d.clear(ctx)
}

// Package inspect describes a model's file or folder: its architecture, its size, and which engines here can run it. It
// starts nothing.
package inspect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/models"
	"llmparity/internal/models/catalogue"
	"llmparity/internal/models/mlc"
	"llmparity/internal/record"
)

// Info describes a model.
type Info struct {
	Kind string `json:"kind"` // gguf, webllm-package, catalogue, model-library, hf-config
	models.Facts
	// Engines says what each engine can do with the model.
	Engines map[string]Ability `json:"engines"`

	title string
	packs *engine.Kind // the engine that holds what Facts say of packages; nil: none
}

// Ability says what an engine can do, or why it cannot, or why only the engine knows.
type Ability struct {
	Can     string `json:"can,omitempty"`
	Cannot  string `json:"cannot,omitempty"`
	Unknown string `json:"unknown,omitempty"`
}

// Open describes a model by its name or path. The type is found from the contents, or else from the name. Engines are
// as chosen.
func Open(ctx context.Context, name string, kinds engine.Kinds, choice *engine.Choice) (Info, error) {
	wanted := models.Wanted("a model library (.wasm)")
	path, err := models.Path(name)
	if err != nil {
		return Info{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return Info{}, fault.Wrap(fault.BadModel, err, wanted, "cannot read the model")
	}
	format, err := models.Recognised(path)
	switch {
	case err != nil:
		return Info{}, fault.Wrap(fault.BadModel, err, wanted, "cannot read the model")
	case format != nil:
		return describe(ctx, format, path, kinds, choice)
	case info.IsDir():
		return Info{}, fault.New(fault.BadModel, wanted, "%s is a folder without a model", path)
	case !info.Mode().IsRegular(): // opening a pipe would block
		return Info{}, fault.New(fault.BadModel, wanted, "%s is not a regular file", path)
	case models.IsLibrary(path):
		return describeLibrary(path, kinds)
	}
	return Info{}, fault.New(fault.BadModel, wanted, "%s is not a model", path)
}

// describe describes a model of a format, and asks each engine what it can do with it.
func describe(ctx context.Context, format *models.Format, path string, kinds engine.Kinds, choice *engine.Choice) (
	Info, error) {
	facts, err := format.Facts(ctx, path)
	if err != nil {
		return Info{}, err
	}
	i := Info{Kind: format.Kind, Facts: facts, title: format.Title, packs: packer(kinds)}
	converted, converts, not := "", false, error(nil)
	if i.Damaged == "" {
		converted, converts, not = format.AsGGUF(path, i.Name)
	}
	i.Engines = abilities(kinds, func(k *engine.Kind) Ability {
		switch {
		case i.Damaged != "":
			return Ability{Cannot: "the package is damaged"}
		case k.Reads(format.Name) && facts.Loaded().Path != "":
			return ability(ctx, k, choice.Engine(k.Name), facts.Loaded())
		case k.Reads(format.Name) && k.Can != nil:
			return abilityOf(k.Can(path))
		case converts && k.Reads(models.GGUF):
			return abilityOf(converted, not)
		}
		why := k.Title + " needs " + models.Names(k.Formats)
		if format.Advice != "" {
			why += "; " + format.Advice
		}
		return Ability{Cannot: why}
	})
	return i, nil
}

// packer returns the engine that runs the packages whose sizes Facts have; nil if there is none.
func packer(kinds engine.Kinds) *engine.Kind {
	runs := func(k *engine.Kind) bool { return k.Reads(models.OfPackages) }
	if i := slices.IndexFunc(kinds, runs); i >= 0 {
		return kinds[i]
	}
	return nil
}

// ability says what an engine can do with a model that Find describes.
func ability(ctx context.Context, k *engine.Kind, e engine.Engine, m models.Model) Ability {
	v := k.Accepts(ctx, e, m)
	err := v.Err()
	if err == nil && k.CannotMake != nil {
		err = k.CannotMake(m)
	}
	if err == nil && v.Answer == engine.Unknown {
		return Ability{Unknown: v.Reason.Error()}
	}
	return abilityOf(k.Runs(m.DType), err)
}

// abilities says what each engine that loads models from files can do.
func abilities(kinds engine.Kinds, of func(*engine.Kind) Ability) map[string]Ability {
	out := map[string]Ability{}
	for _, k := range kinds {
		if k.Runs != nil {
			out[k.Name] = of(k)
		}
	}
	return out
}

// abilityOf is what an engine can do, or why it cannot.
func abilityOf(can string, err error) Ability {
	if err != nil {
		return Ability{Cannot: err.Error()}
	}
	return Ability{Can: can}
}

// Catalogued describes a model of the catalogue that is not downloaded.
func Catalogued(e catalogue.Entry, kinds engine.Kinds) Info {
	i := Info{Kind: "catalogue", packs: packer(kinds), Facts: models.Facts{
		Model: record.Model{Name: e.ID, Format: models.OfCatalogue, Context: max(e.Context(), 0)},
		Notes: []string{"not downloaded; llmparity run downloads the chat models of the catalogue",
			"package: " + e.Model, "model library: " + e.Library,
			"GPU memory, as the catalogue states it: " + words.Size(int64(e.VRAM*record.MiB))}}}
	can := "downloads and runs it"
	if e.Needs(catalogue.ShaderF16) {
		can += ", if the WebGPU adapter has " + catalogue.ShaderF16
	}
	i.Engines = abilities(kinds, func(k *engine.Kind) Ability {
		switch {
		case e.Type != catalogue.Chat:
			return Ability{Cannot: "it is no chat model (" + e.Type.String() + ")"}
		case k.Reads(models.OfCatalogue):
			return Ability{Can: can}
		}
		return Ability{Unknown: "whether the package can become a GGUF is known after the download"}
	})
	return i
}

func describeLibrary(path string, kinds engine.Kinds) (Info, error) {
	l, err := mlc.OpenLibrary(path)
	if err != nil {
		return Info{}, err
	}
	i := Info{Kind: "model-library", title: "model library", packs: packer(kinds)}
	origin := ""
	i.Engines = abilities(kinds, func(k *engine.Kind) Ability {
		if k.Library == nil {
			return Ability{Cannot: k.Title + " needs " + models.Names(k.Formats)}
		}
		from, can, err := k.Library(path, l)
		origin, i.title = from, i.title+" for "+k.Title
		return abilityOf(can, err)
	})
	i.Facts = models.LibraryFacts(path, l, origin)
	return i, nil
}

// Print prints the description.
func (i Info) Print(w io.Writer) {
	row := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); text != "" {
			fmt.Fprintf(w, "%-14s %s\n", name, text)
		}
	}
	row("kind", "%s", i.title)
	row("name", "%s", i.Name)
	row("sha256", "%s", i.SHA256)
	row("damaged", "%s", i.Damaged)
	row("architecture", "%s", i.architecture())
	row("quantization", "%s", i.Quantization)
	if i.Parameters > 0 {
		row("parameters", "%d", i.Parameters)
	}
	if i.WeightsB > 0 {
		row("weights", "%s, in files of %s", mib(i.WeightsB), mib(i.FileB))
	}
	for _, part := range slices.Sorted(maps.Keys(i.BytesByComponent)) {
		var words []string
		for _, dtype := range slices.Sorted(maps.Keys(i.BytesByComponent[part])) {
			words = append(words, mib(i.BytesByComponent[part][dtype])+" "+dtype)
		}
		row("  "+part, "%s", strings.Join(words, ", "))
	}
	if i.Parts > 0 {
		row("  parts", "%d files", i.Parts)
	}
	if i.BytesByComponent == nil {
		for _, dtype := range slices.Sorted(maps.Keys(i.BytesByType)) {
			row("  "+dtype, "%s", mib(i.BytesByType[dtype]))
		}
	}
	if p := i.Packaged; p != nil && i.runsPackaged() {
		row("in "+i.packs.Title, "weights take %s with --dtype f32, %s with --dtype f16", mib(p.F32), mib(p.F16))
	}
	if i.Context > 0 {
		row("context", "%d tokens", i.Context)
	}
	if kv := i.KV; kv != nil && !i.runsPackaged() {
		row("KV cache", "f32: %d bytes per token; f16: %d bytes per token", kv.PerTokenF32, kv.PerTokenF16)
	} else if kv != nil {
		row("KV cache", "f32: %d bytes per token, %[5]s reserves %[2]s; f16: %[3]d bytes per token, %[5]s reserves %[4]s",
			kv.PerTokenF32, mib(kv.ReservedF32), kv.PerTokenF16, mib(kv.ReservedF16), i.packs.Title)
	}
	if i.Tokenizer != "" || i.Kind == models.OfConfig {
		row("tokenizer", "%s, %d tokens", cmp.Or(i.Tokenizer, "not read"), i.Vocab)
	}
	row("chat template", "%s", i.ChatTemplate)
	if l := i.Library; l != nil {
		row("library", "%s, %s, prefill in chunks of %d tokens", l.Origin, mib(i.FileB), l.PrefillChunk)
		for _, function := range slices.Sorted(maps.Keys(l.MemoryUsage)) {
			row("  "+function, "%d bytes of buffers", l.MemoryUsage[function])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.Engines)) {
		a := i.Engines[name]
		switch {
		case a.Cannot != "":
			row(name, "cannot: %s", a.Cannot)
		case a.Unknown != "":
			row(name, "unknown: %s", a.Unknown)
		default:
			row(name, "%s", a.Can)
		}
	}
	for _, note := range i.Notes {
		row("note", "%s", note)
	}
}

// runsPackaged reports whether an engine that runs packages can run the model.
func (i Info) runsPackaged() bool { return i.packs != nil && i.Engines[i.packs.Name].Cannot == "" }

func (i Info) architecture() string {
	if i.Layers == 0 {
		return i.Architecture
	}
	words := fmt.Sprintf("%s: %d layers", i.Architecture, i.Layers)
	if i.Hidden > 0 {
		words += fmt.Sprintf(", hidden size %d", i.Hidden)
	}
	return words + fmt.Sprintf(", %d heads, %d key-value heads, head size %d", i.Heads, i.KVHeads, i.HeadDim)
}

func mib(bytes int64) string { return fmt.Sprintf("%.2f MiB", float64(bytes)/record.MiB) }

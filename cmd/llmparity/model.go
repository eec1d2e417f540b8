package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"llmparity/assets/bundle"
	"llmparity/browser/webllm"
	"llmparity/internal/host/cache"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
	"llmparity/internal/kit/words"
	"llmparity/internal/models"
	"llmparity/internal/models/catalogue"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/tiny"
	"llmparity/internal/predict/inspect"
	"llmparity/internal/record"
)

func modelCommand() *cobra.Command {
	c := parent("model", "List, inspect, convert, quantize and create models", listCommand(), infoCommand(), convertCommand(),
		quantizeCommand(), tinyCommand(), randomCommand(), libraryCommand())
	c.Example = "  llmparity model list Llama\n  llmparity model convert my.gguf --to webllm"
	return c
}

func listCommand() *cobra.Command {
	var asJSON, local bool
	var mirror string
	c := &cobra.Command{
		Use:   "list [FILTER]",
		Short: "List the models of WebLLM's catalogue, or those on this disk",
		Long: `List the models of WebLLM ` + bundle.Version + `'s catalogue whose ids contain FILTER: size of the weights, GPU memory
that WebLLM states, and whether shader-f16 is needed. "-" means unknown: sizes are known for downloaded
models, or with --mirror. Nothing is downloaded.

--local lists the GGUF models that other tools have downloaded, by the names that --model takes: in Hugging
Face's cache ($HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub) and in Ollama's store ($OLLAMA_MODELS
or ~/.ollama/models).

Docs: docs/howto/use-your-own-model.md`,
		Example: "  llmparity model list\n  llmparity model list q4f16_1 --json\n  llmparity model list --local",
		Args:    arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case local && mirror != "":
				return fault.New(fault.Usage, "omit one of them",
					"--mirror is for WebLLM's catalogue, which --local does not list")
			case local:
				return listLocal(c.OutOrStdout(), strings.Join(args, ""), asJSON)
			}
			known, err := builtInCatalogue()
			if err != nil {
				return err
			}
			models, err := known.List(c.Context(), strings.Join(args, ""), mirror,
				catalogue.Store(cache.Dir(os.Getenv)), said(c))
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), models)
			}
			t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "MODEL\tGPU MEMORY\tWEIGHTS\tSHADER-F16\tDOWNLOADED")
			for _, m := range models {
				size, f16, stored := "-", "-", "-"
				if m.WeightsB != nil {
					size = words.Size(*m.WeightsB)
				}
				if m.F16 {
					f16 = "needed"
				}
				if m.Stored {
					stored = "yes"
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", m.ID, words.Size(int64(m.VRAMMB*record.MiB)), size, f16, stored)
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&local, "local", false, "list the models in Hugging Face's cache and in Ollama's store")
	c.Flags().StringVar(&mirror, "mirror", "", "address or folder to read sizes from; must have the layout of the public site")
	return c
}

// listLocal prints the models of other tools.
func listLocal(w io.Writer, filter string, asJSON bool) error {
	local := slices.DeleteFunc(models.AllLocal(),
		func(m models.OnDisk) bool { return !strings.Contains(m.Name, filter) })
	if asJSON {
		return printJSON(w, local)
	}
	if len(local) == 0 {
		what := "no GGUF models"
		if filter != "" {
			what += fmt.Sprintf(" with %q in their names", filter)
		}
		hub, ollama := models.LocalFolders()
		_, err := fmt.Fprintf(w, "%s in Hugging Face's cache (%s) or Ollama's store (%s)\n", what, hub, ollama)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MODEL\tSIZE\tFILE")
	for _, m := range local {
		fmt.Fprintf(t, "%s\t%s\t%s\n", m.Name, words.Size(m.Bytes), m.Path)
	}
	return t.Flush()
}

// said prints messages to standard error.
func said(c *cobra.Command) func(string) {
	return func(line string) { fmt.Fprintln(c.ErrOrStderr(), line) }
}

// builtInCatalogue is the catalogue of the embedded WebLLM.
func builtInCatalogue() (catalogue.Catalogue, error) {
	text, err := bundle.Catalogue()
	if err != nil {
		return catalogue.Catalogue{}, err
	}
	return catalogue.Parse(text)
}

func libraryCommand() *cobra.Command {
	var mirror string
	c := &cobra.Command{
		Use:   "fetch ID",
		Short: "Download MLC's model library of a catalogue model",
		Long: `Download the model library that WebLLM ` + bundle.Version + `'s catalogue names for a model, and print its SHA-256. From
then on a run uses it for every model of this shape and quantization (--model-lib auto).

The first download pins the SHA-256: a later one with another content is refused.

Docs: docs/howto/use-webllm.md`,
		Example: "  llmparity model library fetch Qwen2-0.5B-Instruct-q0f32-MLC\n" +
			"  llmparity model library fetch Qwen2-0.5B-Instruct-q4f16_1-MLC --mirror /mnt/mlc",
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			known, err := builtInCatalogue()
			if err != nil {
				return err
			}
			e, err := known.Find(args[0])
			if err != nil {
				return err
			}
			got, err := catalogue.FetchLibrary(c.Context(), cache.Dir(os.Getenv), e.Library, mirror, said(c))
			if err == nil {
				fmt.Fprintf(c.OutOrStdout(), "%s  %s\n", got.File, got.SHA256)
			}
			return err
		},
	}
	c.Flags().StringVar(&mirror, "mirror", "", "address or folder to download from; must have the layout of the public site")
	p := parent("library", "Download MLC's model libraries", c)
	p.Example = c.Example
	return p
}

func infoCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "info MODEL",
		Short: "Show a model's architecture, size, and which engines here can run it",
		Long: `Show a model's architecture and size, and which engines here can run it. MODEL is a name as in run --model,
a GGUF file of any architecture, a WebLLM package's folder, a compiled model library (.wasm), which is not
executed, or a Hugging Face folder or its config.json. Nothing is downloaded. The files of a GGUF or package are
read whole: for the hash of the GGUF, and to find damaged files of the package.`,
		Example: "  llmparity model info my.gguf\n  llmparity model info my-webllm --json\n  llmparity model info hf:org/name",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			info, err := infoOn(c.Context(), args[0])
			if err != nil {
				return err
			}
			return show(c.OutOrStdout(), info, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// infoOn describes a model. One of the catalogue need not be downloaded.
func infoOn(ctx context.Context, name string) (inspect.Info, error) {
	if models.Listed(name) && filepath.Ext(name) != ".wasm" {
		dir, stored := models.Stored(name)
		if !stored {
			known, err := builtInCatalogue()
			if err != nil {
				return inspect.Info{}, err
			}
			e, err := known.Find(name)
			return inspect.Catalogued(e, kinds.All), err
		}
		name = dir
	}
	return inspect.Open(ctx, name, kinds.All, new(engineFlags).chosen())
}

func convertCommand() *cobra.Command {
	var to, out string
	var window int
	var f engineFlags
	c := &cobra.Command{
		Use:   "convert IN --to webllm|gguf",
		Short: "Convert GGUF files to WebLLM packages, and back",
		Long: `Convert a GGUF file to a WebLLM package with its model library, or to a GGUF file with float32 weights.
Convert a WebLLM package, a folder or a downloaded model of the catalogue, to a GGUF file with the same weights.

To compare a quantized model token by token, convert it to a float32 GGUF file first, and make the
package from that file: WebLLM and native engines compute with quantized weights differently.

While llmparity writes a package's GGUF file, it compares every weight with the package. If a GGUF file
cannot express a part of the package, the package is refused and the error names the part.

From IN.gguf, --to webllm writes the folder IN-webllm (with --dtype f16 IN-webllm-f16, with --context N
IN-webllm-cN, with --requantize q4_0 IN-webllm-q4_0), and --to gguf writes IN-f32.gguf. From a package,
--to gguf writes NAME.gguf. An existing file or folder is replaced.

Docs: docs/howto/use-your-own-model.md`,
		Example: `  llmparity model convert my.gguf --to webllm
  llmparity model convert my-q4_0.gguf --to gguf -o models
  llmparity model convert Llama-3.2-1B-Instruct-q4f32_1-MLC --to gguf`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.valid(c.Flags().Changed); err != nil {
				return err
			}
			if f.dtype != webllm.F32 && f.dtype != webllm.F16 {
				return fault.New(fault.Usage, "use f32 or f16", "--dtype: unknown dtype %q", f.dtype)
			}
			if window < 0 || window == 1 {
				return fault.New(fault.Usage, "", "--context %d: must be at least 2, or 0 for the model's maximum", window)
			}
			name := strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0]))
			switch to {
			case "webllm":
				name += "-webllm"
				if f.dtype == webllm.F16 {
					name += "-f16"
				}
				if f.chosen().Config(webllm.Kind).(*webllm.Config).Requantize != "" {
					name += "-" + mlc.Requantized
				}
				if window > 0 {
					name += fmt.Sprintf("-c%d", window)
				}
				return writePackage(c, args[0], filepath.Join(out, name), window, &f)
			case "gguf":
				for _, name := range []string{"context", "kernels", "sort", "dtype", "weights", "requantize"} {
					if c.Flags().Changed(name) {
						return fault.New(fault.Usage, "", "--%s requires --to webllm", name)
					}
				}
				if g, title, err := models.Convertible(args[0]); err != nil {
					return err
				} else if g != nil {
					return unpack(c, g, filepath.Join(out, title+".gguf"))
				}
				if models.Listed(args[0]) {
					return fault.New(fault.BadModel, "name another, or download a catalogue's with \"llmparity run --model ID\"",
						"%s is no file, folder or downloaded model", args[0])
				}
				return writeGGUF(c, args[0], filepath.Join(out, name+"-f32.gguf"))
			}
			return fault.New(fault.Usage, "use webllm or gguf", "--to: unknown format %q", to)
		},
	}
	c.Flags().StringVar(&to, "to", "", "format to convert to: webllm or gguf")
	c.Flags().StringVarP(&out, "output", "o", ".", "folder to write into")
	f.register(c.Flags(), ofPackages)
	c.Flags().StringVar(&f.dtype, "dtype", webllm.F32,
		"dtype of weights, activations and KV cache: f32 or f16 (needs shader-f16)")
	c.Flags().IntVar(&window, "context", 0, "context window of the package in tokens (default: the model's maximum)")
	return c
}

// writeGGUF writes the model's values as float32, atomically.
func writeGGUF(c *cobra.Command, path, target string) error {
	f, err := gguf.OpenReadable(path)
	if err != nil {
		return err
	}
	defer f.Close()
	// Refuse an incomplete model, and a vocabulary that engines would read in different ways.
	if _, err := f.Architecture(); err != nil {
		return err
	}
	if _, err := f.Vocabulary(); err != nil {
		return err
	}
	var bytes int64
	for _, t := range f.Tensors {
		bytes += 4 * t.Elements()
	}
	if err := cache.Free(filepath.Dir(target), bytes, chooseFolder); err != nil {
		return err
	}
	return writeModel(c, target, func() error {
		return writeFault(whole.Write(target, func(out io.Writer) error {
			return gguf.Write(whole.Until(c.Context(), out), gguf.AsFloat32(f.Metadata), f.Unquantised())
		}), target)
	})
}

// unpack writes the GGUF that a model becomes, atomically.
func unpack(c *cobra.Command, g *models.Converted, target string) error {
	if err := cache.Free(filepath.Dir(target), g.File.Size, chooseFolder); err != nil {
		return err
	}
	err := writeModel(c, target, func() error { return writeFault(g.Write(c.Context(), target), target) })
	if err == nil {
		said(c)("compared with the package: " + g.Same.String())
		err = tokenizes(target, said(c))
	}
	return err
}

// tokenizes says which texts llama.cpp tokenises unlike the model's own tokenizer.
func tokenizes(path string, say func(string)) error {
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	v, err := f.Vocabulary()
	if err == nil && v.Pre == gguf.PreGPT4o {
		say("unlike the model's own tokenizer (gpt-4o), llama.cpp cuts words at combining marks, and not before capitals " +
			"outside ASCII: such texts may get other tokens")
	}
	return err
}

const chooseFolder = "name another folder with -o"

func writeFault(err error, target string) error { return fault.WriteError(err, target, chooseFolder) }

func tinyCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "tiny",
		Short: "Write the built-in tiny model (random weights) as GGUF file and WebLLM package",
		Long: `Write the built-in tiny model as tiny.gguf and as a WebLLM package (folder webllm) with the same weights.
Its weights are random, and the files are the same on every machine. Compiling the model library needs
Python and Emscripten ("make setup").`,
		Example: "  llmparity model tiny\n  llmparity model tiny -o models",
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			path := filepath.Join(out, "tiny.gguf")
			if err := writeModel(c, path, func() error { return tiny.WriteFile(path) }); err != nil {
				return err
			}
			return writePackage(c, path, filepath.Join(out, "webllm"), 0, new(engineFlags))
		},
	}
	c.Flags().StringVarP(&out, "output", "o", ".", "folder to write into")
	return c
}

// writeModel writes a file into a folder, which it makes, and prints its path and hash.
func writeModel(c *cobra.Command, path string, write func() error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return writeFault(err, path)
	}
	if err := write(); err != nil {
		return err
	}
	sum, err := cache.HashFile(path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s  %s\n", path, sum)
	return err
}

// writePackage writes a WebLLM package with its model library, lib.wasm. A context of 0 is the model's maximum.
func writePackage(c *cobra.Command, path, target string, context int, f *engineFlags) error {
	m, err := models.Open(c.Context(), path, context)
	if err == nil {
		err = cmp.Or(m.Unsupported, m.Unreadable)
	}
	if err != nil {
		return err
	}
	// Compiling takes minutes: check the folder first.
	if err := writable(target); err != nil {
		return err
	}
	config, s := f.chosen().Config(webllm.Kind).(*webllm.Config), f.chosen().Settings
	s.DType = f.dtype
	if err := webllm.Write(c.Context(), m, target, *config, s, said(c)); err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "%s/\n%s\n", target, filepath.Join(target, mlc.LibraryName))
	return nil
}

// writable returns the reason why a package cannot be written to target.
func writable(target string) error {
	if info, err := os.Stat(target); err == nil && !info.IsDir() {
		return fault.New(fault.Unwritable, "name another folder with -o", "can't write %s: it is not a folder", target)
	}
	beside, err := whole.NewFolder(filepath.Dir(target))
	if err == nil {
		beside.Remove()
	}
	return writeFault(err, target)
}

func randomCommand() *cobra.Command {
	var s tiny.Spec
	var out string
	c := &cobra.Command{
		Use:   "random -o FILE",
		Short: "Create a model of any shape with random weights",
		Long: `Create a GGUF file of any shape with random weights. The same flags give the same file everywhere.

Use it to measure how memory and speed depend on layers, heads, context window or vocabulary, and
whether engines agree on a feature of the architecture. The generated text is meaningless.`,
		Example: `  llmparity model random --layers 8 --hidden 512 --heads 8 --kv-heads 2 -o gqa.gguf
  llmparity model random --arch qwen2 --tied -o qwen2.gguf`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := refuseZeros(c.Flags(), "window"); err != nil {
				return err
			}
			if c.Flags().Changed("rope-factor") && !c.Flags().Changed("rope-scaling") {
				return fault.New(fault.Usage, "", "--rope-factor requires --rope-scaling")
			}
			err := writeModel(c, out, func() error { return tiny.WriteRandomFile(c.Context(), out, s) })
			if err != nil {
				return err
			}
			m, err := models.Open(c.Context(), out, 0)
			if err == nil {
				fmt.Fprintf(c.OutOrStdout(), "%d parameters\n", m.Parameters)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVarP(&out, "output", "o", "random.gguf", "file to write")
	f.StringVar(&s.Architecture, "arch", "", "architecture: llama, qwen2, qwen3, gemma2, gemma3 or phi3 (default llama)")
	f.IntVar(&s.Layers, "layers", 0, "number of layers (default 2)")
	f.IntVar(&s.Hidden, "hidden", 0, "size of the hidden state (default 128)")
	f.IntVar(&s.Heads, "heads", 0, "number of attention heads (default 4; with --head-dim: hidden size divided by it)")
	f.IntVar(&s.KVHeads, "kv-heads", 0, "number of key-value heads; must divide --heads (default: --heads)")
	f.IntVar(&s.HeadDim, "head-dim", 0, "size of a head (default: hidden size / heads)")
	f.IntVar(&s.FFN, "ffn", 0, "size of the feed-forward layer (default: 2 * hidden size)")
	f.IntVar(&s.Vocab, "vocab", 0, "size of the vocabulary, at least 512 (default 640)")
	f.IntVar(&s.Context, "context", 0, "maximum context in tokens (default 1024)")
	f.IntVar(&s.Window, "window", 0, "sliding window in tokens (default none); llama.cpp ignores the window of llama and phi3")
	f.Float64Var(&s.AttentionCap, "attention-cap", 0, "gemma2: soft cap of attention scores (default none)")
	f.Float64Var(&s.OutputCap, "output-cap", 0, "gemma2, gemma3: soft cap of logits (default none)")
	f.BoolVar(&s.Tied, "tied", false, "use the embedding's weights in the output head, too")
	f.BoolVar(&s.Bias, "bias", false, "add biases to queries, keys and values (qwen2 always has them)")
	f.BoolVar(&s.Fused, "fused", false, "store queries, keys and values as one tensor (phi3 always does)")
	f.Float64Var(&s.RopeBase, "rope-base", 0, "RoPE base frequency (default 10000)")
	f.Float64Var(&s.NormEpsilon, "norm-epsilon", 0, "epsilon of the norms (default 1e-05)")
	f.Float64Var(&s.LocalBase, "local-base", 0, "gemma3: RoPE base of layers with a sliding window (default 10000)")
	f.IntVar(&s.RotaryDim, "rotary-dim", 0, "phi3: number of values of each head that RoPE rotates (default all)")
	f.StringVar(&s.RopeScaling, "rope-scaling", "", "RoPE scaling: linear, llama3, or longrope, which needs phi3 (default none)")
	f.Float64Var(&s.RopeFactor, "rope-factor", 0, "factor of --rope-scaling (default 8)")
	f.StringVar(&s.Tokenizer, "tokenizer",
		"", "tokenizer: gpt-2, smollm, llama-bpe, qwen2 or sentencepiece (default that of the architecture, gpt-2 for llama)")
	f.StringVar(&s.Type, "type", "", "type of the matrices: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K or Q6_K (default F32)")
	f.Uint64Var(&s.Seed, "seed", 0, "random seed (default 1)")
	return c
}

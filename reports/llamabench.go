package reports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/kit/safe"
	"llmparity/internal/record"
	"llmparity/internal/stats"
	"llmparity/reports/plain"
	"llmparity/reports/section"
)

// llamaBench is a row of llama-bench: the prefill of a cell, or its decode. Readers look for all fields, so what the
// record does not have is null; those of llmparity's own stand last.
type llamaBench struct {
	BuildCommit *string `json:"build_commit"`
	BuildNumber *int    `json:"build_number"`
	CPU         *string `json:"cpu_info"`
	GPU         *string `json:"gpu_info"`
	Backends    *string `json:"backends"`
	File        string  `json:"model_filename"`
	Type        string  `json:"model_type"`
	Size        *int64  `json:"model_size"`
	Params      *int64  `json:"model_n_params"`
	Batch       *int    `json:"n_batch"`
	UBatch      *int    `json:"n_ubatch"`
	Threads     *int    `json:"n_threads"`
	Mask        *string `json:"cpu_mask"` // as others that no record has: always null
	Strict      *bool   `json:"cpu_strict"`
	Poll        *int    `json:"poll"`
	TypeK       *string `json:"type_k"`
	TypeV       *string `json:"type_v"`
	GPULayers   *int    `json:"n_gpu_layers"`
	MoE         *int    `json:"n_cpu_moe"`
	Split       *string `json:"split_mode"`
	Main        *int    `json:"main_gpu"`
	NoKV        *bool   `json:"no_kv_offload"`
	Flash       *int    `json:"flash_attn"`
	Devices     *string `json:"devices"`
	Tensors     *string `json:"tensor_split"`
	Override    *string `json:"tensor_buft_overrides"`
	Load        *string `json:"load_mode"`
	Lazy        *string `json:"lazy_mode"`
	Embeddings  *bool   `json:"embeddings"`
	NoOp        *int    `json:"no_op_offload"`
	NoHost      *bool   `json:"no_host"`
	Repack      *bool   `json:"repack"`
	FitTarget   *int    `json:"fit_target"`
	FitContext  *int    `json:"fit_min_ctx"`
	Prompt      int     `json:"n_prompt"`
	Generated   int     `json:"n_gen"`
	Depth       int     `json:"n_depth"`
	Time        string  `json:"test_time"`
	AvgNS       int64   `json:"avg_ns"`
	StdDevNS    int64   `json:"stddev_ns"`
	AvgTS       float64 `json:"avg_ts"`
	StdDevTS    float64 `json:"stddev_ts"`

	SamplesNS []int64   `json:"samples_ns"`
	SamplesTS []float64 `json:"samples_ts"`

	Engine   string   `json:"llmparity_engine"`
	Label    string   `json:"llmparity_cell"`
	Warnings []string `json:"llmparity_warnings,omitempty"` // in the first row
}

// test is the name of a row in llama-bench's table.
func (r *llamaBench) test() string {
	name := fmt.Sprint("pp", r.Prompt)
	if r.Generated > 0 {
		name = fmt.Sprint("tg", r.Generated)
	}
	if r.Depth > 0 {
		name += fmt.Sprint(" @ d", r.Depth)
	}
	return name
}

// llamaRows are two rows a cell. Our decode speed begins after the first token, so n tokens are n-1 evaluations behind
// the prompt: tg(n-1) @ d(prompt). A sample is a launch.
func llamaRows(res *compare.Result) (out []*llamaBench) {
	for _, c := range res.Cells {
		prompt, generated := counted(c.Figure(figure.Prompt)), counted(c.Figure(figure.Tokens))
		for _, of := range []struct {
			name              string
			prompt, gen, deep int
		}{{figure.PrefillTPS, prompt - counted(c.Figure(figure.Cached)), 0, counted(c.Figure(figure.Cached))},
			{figure.DecodeTPS, 0, generated - 1, prompt}} {
			f := c.Figure(of.name)
			if !f.Known() || of.prompt+of.gen <= 0 {
				continue
			}
			row := llamaSetup(res, c)
			row.Prompt, row.Generated, row.Depth = of.prompt, of.gen, of.deep
			row.measure(f)
			if len(out) == 0 {
				row.Warnings = plain.Lines(section.WarningLines(res.Warnings, res))
			}
			out = append(out, row)
		}
	}
	return out
}

// measure fills in the samples, and their mean and standard deviation, which llama-bench has.
func (r *llamaBench) measure(f evidence.Figure) {
	n := float64(r.Prompt + r.Generated)
	var times []float64
	r.SamplesNS, r.SamplesTS = []int64{}, []float64{}
	for _, v := range f.Values {
		ns := n / v.Value * 1e9
		times = append(times, ns)
		r.SamplesNS, r.SamplesTS = append(r.SamplesNS, int64(ns)), append(r.SamplesTS, v.Value)
	}
	mean, deviation := sampled(times)
	r.AvgNS, r.StdDevNS = int64(mean), int64(deviation)
	mean, deviation = sampled(r.SamplesTS)
	r.AvgTS, r.StdDevTS = stats.Round(mean, 6), stats.Round(deviation, 6)
}

// sampled is the mean of a sample, and its standard deviation; 0 for one value.
func sampled(values []float64) (mean, deviation float64) {
	n := float64(len(values))
	mean, _, deviation = stats.Moments(values)
	return mean, deviation * math.Sqrt(n/max(1, n-1))
}

// llamaSetup is what a cell ran with, as far as the record knows it under llama-bench's names.
func llamaSetup(res *compare.Result, c *compare.Cell) *llamaBench {
	run, m := res.Runs[c.Run], c.Spec.Model
	file := cmp.Or(m.File, m.Name)
	r := &llamaBench{File: plain.Line(file), Type: plain.Line(modelType(m)), Engine: c.Spec.Engine,
		Label: plain.Line(c.Label), Time: run.Started.UTC().Format("2006-01-02T15:04:05Z"),
		CPU: known(plain.Line(run.Environment.CPU)), Size: known(m.WeightsB), Params: known(m.Parameters),
		Threads: number(c.Says("threads")), Batch: number(c.Says("batch")), UBatch: number(c.Says("ubatch")),
		GPULayers: number(c.Says("gpu_layers")), Flash: onOff(c.Says("flash_attention"), 1, 0),
		Repack: onOff(c.Says("repacking"), true, false)}
	if kv := c.Says("kv_dtype"); kv != "" && !strings.ContainsAny(kv, "/, ") { // one for keys and values
		r.TypeK, r.TypeV = &kv, &kv
	}
	if c.Device != nil {
		r.Backends = known(plain.Line(string(c.Device.Class)))
		if c.Device.Class != record.CPU {
			r.GPU = known(plain.Line(c.Device.Name))
		}
	}
	build, commit, _ := strings.Cut(c.Part("build"), "-")
	r.BuildNumber, r.BuildCommit = number(strings.TrimPrefix(build, "b")), known(commit)
	return r
}

func modelType(m record.Model) string {
	return strings.Join(strings.Fields(m.Architecture+" "+parameters(m.Parameters)+" "+m.DType), " ")
}

func parameters(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n < 1e9:
		return fmt.Sprintf("%.2f M", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f B", float64(n)/1e9)
}

// known is nil for what is not known.
func known[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}

func number(text string) *int {
	if n, err := strconv.Atoi(text); err == nil {
		return &n
	}
	return nil
}

// onOff is what a setting that is on or off means; nil: neither.
func onOff[T any](says string, on, off T) *T {
	switch says {
	case "on":
		return &on
	case "off":
		return &off
	}
	return nil
}

// counted is a count; 0 if it is not known.
func counted(f evidence.Figure) int {
	if !f.Known() {
		return 0
	}
	return int(f.Center() + 0.5)
}

// LlamaBenchJSONL writes the rows of `llama-bench -o jsonl`.
func LlamaBenchJSONL(w io.Writer, res *compare.Result) error {
	to := json.NewEncoder(w)
	to.SetEscapeHTML(false)
	for _, r := range llamaRows(res) {
		if err := to.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// LlamaBench writes the table of `llama-bench -o md`, with the engine as its backend. The warnings follow it.
func LlamaBench(w io.Writer, res *compare.Result) error {
	var b strings.Builder
	b.WriteString("| model                          |       size |     params | backend    | threads |            test |                  t/s |\n" +
		"| ------------------------------ | ---------: | ---------: | ---------- | ------: | --------------: | -------------------: |\n")
	rows := llamaRows(res)
	for _, r := range rows {
		size, params, threads := "", "", ""
		if r.Size != nil {
			size = fmt.Sprintf("%.2f MiB", float64(*r.Size)/record.MiB)
		}
		if r.Params != nil {
			params = parameters(*r.Params)
		}
		if r.Threads != nil {
			threads = strconv.Itoa(*r.Threads)
		}
		fmt.Fprintf(&b, "| %-30s | %10s | %10s | %-10s | %7s | %15s | %20s |\n", safe.Markdown(r.Type), size, params,
			safe.Markdown(plain.Line(r.Engine)), threads, r.test(), fmt.Sprintf("%.2f ± %.2f", r.AvgTS, r.StdDevTS))
	}
	for _, r := range rows {
		for _, text := range r.Warnings {
			fmt.Fprintf(&b, "\nwarning: %s\n", safe.Markdown(text))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

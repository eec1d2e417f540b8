package reports_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
	"llmparity/reports"
)

func renderedThrice(t *testing.T, run *record.Run) (table, page, text string) {
	t.Helper()
	res := compare.Runs(run)
	var b [3]bytes.Buffer
	if err := reports.Table(&b[0], res); err != nil {
		t.Fatal(err)
	}
	if err := colours.HTML(&b[1], res, run); err != nil {
		t.Fatal(err)
	}
	if err := reports.JSON(&b[2], res); err != nil {
		t.Fatal(err)
	}
	return b[0].String(), b[1].String(), b[2].String()
}

// metric adds a reading every 50 ms from the attempt's first phase to its last.
func metric(a *record.Attempt, source int, name string, value float64) {
	last := a.Phases[len(a.Phases)-1]
	for at := a.Phases[0].BeginNS; at <= last.EndNS; at += int64(50 * time.Millisecond) {
		a.Metrics = append(a.Metrics, record.MetricRow{Source: source, NS: at, Name: name, Value: value})
	}
}

func TestGPUsAndEnergyAreShownWhereTheyWereRead(t *testing.T) {
	run := comparetest.Run(t, "gpu", comparetest.Native(2))
	const title = "GPUs and energy"
	table, page, text := renderedThrice(t, run)
	for _, out := range []string{table, page, text} {
		if strings.Contains(out, title) || strings.Contains(out, `"hardware"`) {
			t.Error("shown of a machine without")
		}
	}
	if !strings.Contains(page, "no GPU that can be asked") {
		t.Error("it is not said that there is no GPU")
	}

	run.Environment.GPUs = []record.GPUInfo{{Role: "gpu0", Name: "Example <9000>", Method: "nvml"},
		{Role: "gpu1", Name: "Example <9000>", Method: "nvml"}}
	for _, a := range run.Attempts {
		for i, s := range []record.Source{{Role: "gpu0", Method: "nvml", Blind: "which process"},
			{Role: "gpu1", Method: "nvml"},
			{Role: "server", Method: "nvml_process", PID: 4000}, {Role: "cpu0", Method: "rapl"}} {
			s.Every = 50 * time.Millisecond
			a.Sources[90+i] = s
		}
		for i := range 2 {
			metric(a, 90+i, "memory_used_bytes", float64(i+1)*1000*record.MiB)
			metric(a, 90+i, "memory_free_bytes", 5000*record.MiB)
			metric(a, 90+i, "power_watts", 125)
		}
		metric(a, 92, "gpu_memory_bytes", 777*record.MiB)
		metric(a, 93, "power_watts", 33)
	}
	table, page, text = renderedThrice(t, run)
	for _, want := range []string{title, "gpus ", "3000", "250", "server (nvml_process)", "777", "cpu0", "33",
		"J/token"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	if strings.Contains(table, "gpu0") {
		t.Error("each GPU is in the terminal beside all together")
	}
	for _, want := range []string{title, "gpu0", "gpu1", "Example &lt;9000&gt;", "gpu0, gpu1", "5000", "777",
		"which process", "the integral of the power"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, want := range []string{`"hardware"`, `"kind": "gpus"`, `"name": "energy_per_token"`,
		`"name": "gpu_memory_peak"`} {
		if !strings.Contains(text, want) {
			t.Errorf("JSON lacks %q", want)
		}
	}
}

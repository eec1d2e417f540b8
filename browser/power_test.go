package browser

import (
	"testing"

	"llmparity/internal/kit/check"
)

// askedFor calls requestAdapter as an engine would, and returns the power preference that the browser is asked for.
const askedFor = `(async () => {
  const call = Function.prototype.call;
  let power = "none";
  Function.prototype.call = function (self, options) { power = options?.powerPreference ?? power; return Reflect.apply(this, self, [options]); };
  try { await navigator.gpu.requestAdapter({ powerPreference: "high-performance" }); } finally { Function.prototype.call = call; }
  return power;
})()`

// The preference overrides that of the engine, in the page and in its worker, and the record has it.
func TestPowerPreference(t *testing.T) {
	for _, thread := range []Thread{PageThread, WorkerThread} {
		p, _ := fresh(t, Config{Power: "low-power", Thread: thread})
		got, err := Call[string](watched(t), p, askedFor)
		check.Err(t, err)
		if said := p.Info().Policy["power_preference"]; got != "low-power" || said != "low-power" {
			t.Errorf("%s: the adapter is requested with %q, the record has %q", thread, got, said)
		}
	}
	p, _ := fresh(t, Config{})
	if _, there := p.Info().Policy["power_preference"]; there {
		t.Error("a preference that nobody asked for")
	}
}

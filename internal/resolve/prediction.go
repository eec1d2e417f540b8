package resolve

import (
	"context"
	"math"

	"llmparity/internal/estimate"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/sample/gpu"
)

// Prediction is what a cell is likely to need, before anything is prepared.
type Prediction struct {
	// Best and High are the memory of the engine's processes in RAM and on GPUs, in bytes; 0: unknown.
	Best, High int64
	Risk       record.RiskLevel
	Seconds    *float64 // from earlier runs of the engine with the model; nil: unknown
}

// prediction predicts what a cell needs.
func (r *Resolver) prediction(ctx context.Context, c *Cell) Prediction {
	s := c.Setup
	if !r.Dry {
		return Prediction{}
	}
	e := s.launch.set.engines[c.at]
	input, output, _ := r.longest(s.Model, c.Shape.Prompt, c.Shape.InputTokens, c.Shape.MaxTokens, c.Shape.Traffic)
	key := [7]any{s.launch.set, c.at, s.Model.Name, s.Model.Path, s.Model.Context, input, output}
	f, _ := once(r.cache, key, func() (Prediction, error) {
		return r.predictedMemory(ctx, e, s, input, output), nil
	})
	if past := (pastKey{e.Name(), s.Model.Name}); r.history()[past] != nil {
		prompt, generated := r.tokens(c.Shape, s)
		n := Attempts(s.Planned)
		if seconds, known := r.history().of(past, Launches(s, c.Shape), n*prompt, n*generated); known {
			f.Seconds = &seconds
		}
	}
	return f
}

func (r *Resolver) predictedMemory(ctx context.Context, e Engine, s *Setup, input, output int) (f Prediction) {
	est, held, err := r.estimated(ctx, e, s, input, output)
	switch {
	case err != nil || held.As == nil && s.Model.Format != record.Served:
		return f
	case held.As == nil: // of a server, only weights and KV cache are predicted
		for _, c := range loosened(predicted(0, est), e.Name()).Parts {
			if c.Name != estimate.KVUsed {
				f.Best, f.High = f.Best+c.Best, f.High+c.High
			}
		}
		return f
	}
	rooms, _ := once(r.cache, "rooms", func() (map[string]estimate.Room, error) {
		var gpus *gpu.Monitor
		if r.GPU {
			gpus = gpu.Open(ctx, gpu.Options{})
			defer gpus.Close()
		}
		return Rooms(ctx, est, gpus), nil
	})
	rooms[estimate.Buffer] = estimate.LargestBuffer(est.Setup.OnGPU)
	f.Risk = est.Risk(rooms).Level
	for _, n := range est.Needs() {
		if n.Place == estimate.RAM || n.Place == estimate.VRAM {
			f.Best, f.High = f.Best+n.Best, f.High+n.High
		}
	}
	return f
}

// tokens returns the prompt tokens and generated tokens of all requests of an attempt.
func (r *Resolver) tokens(s *plan.Shape, of *Setup) (prompt, generated int) {
	requests, asked := Requests(s), r.questions(s)
	var shares []float64
	all := 0.0
	for i := range asked {
		share := 1.0
		if s.Traffic != nil && i < len(s.Traffic.Mix) && s.Traffic.Mix[i].Share > 0 {
			share = s.Traffic.Mix[i].Share
		}
		shares, all = append(shares, share), all+share
	}
	for i, q := range asked {
		part := float64(requests) * shares[i] / all
		if q.in == 0 {
			q.in, _ = r.counted(of.Model, q.prompt)
		}
		prompt += int(math.Round(part * float64(q.in)))
		generated += int(math.Round(part * float64(q.out)))
	}
	return prompt, generated
}

// Requests returns how many requests a launch measures.
func Requests(s *plan.Shape) int {
	if s.Traffic == nil {
		return 1
	}
	return max(s.Traffic.Requests, 1)
}

// Attempts returns the number of attempts for each cell: warm-up launches and repetitions.
func Attempts(p plan.Plan) int { return p.Warmup.Launches + p.Repetitions }

// Launches returns how often an engine is launched for a cell. A shared launch belongs to its first cell.
func Launches(s *Setup, shape *plan.Shape) int {
	switch {
	case s.Planned.Isolation == plan.Reused, s.Planned.Isolation == plan.Shared && shape == &s.Shapes[0]:
		return s.Planned.Warmup.Launches + 1
	case s.Planned.Isolation == plan.Shared:
		return s.Planned.Warmup.Launches
	}
	return Attempts(s.Planned)
}

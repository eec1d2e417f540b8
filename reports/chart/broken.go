package chart

import (
	"fmt"
	"math"

	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/reports/plain"
)

// extent is the range of what is drawn along an axis.
type extent struct {
	lo, hi float64
	some   bool
}

func (e *extent) add(values ...float64) {
	for _, v := range values {
		switch {
		case math.IsNaN(v):
		case !e.some:
			e.lo, e.hi, e.some = v, v, true
		default:
			e.lo, e.hi = min(e.lo, v), max(e.hi, v)
		}
	}
}

// apart is the range, as a share of its end, below which an axis is broken: from 0 on, differences would not be seen.
const apart = 0.3

// resumes is where an axis goes on that begins at 0 and is broken; 0: it is whole.
func (e extent) resumes() float64 {
	span := e.hi - e.lo
	if !e.some || e.lo <= 0 || span >= apart*e.hi {
		return 0
	}
	if span == 0 {
		span = e.hi / 20
	}
	step := math.Pow(10, math.Floor(math.Log10(span)))
	from := math.Floor((e.lo-span/6)/step) * step
	if from < step {
		return 0
	}
	return fine(from)
}

// words say that an axis is broken; empty: it is whole.
func (e extent) words() string {
	if from := e.resumes(); from > 0 {
		return fmt.Sprintf(" The zigzag marks a broken axis: 0 to %s is left out.", plain.Num(from))
	}
	return ""
}

// axisBreak is a stretch that echarts leaves out of an axis.
type axisBreak struct {
	Start float64 `json:"start"`
	End   float64 `json:"end"`
	Gap   string  `json:"gap"`
}

// breakArea is how the place of a break looks.
type breakArea struct {
	ItemStyle       breakStyle `json:"itemStyle"`
	ExpandOnClick   bool       `json:"expandOnClick"`
	ZigzagAmplitude int        `json:"zigzagAmplitude"`
}

type breakStyle struct {
	opts.ItemStyle
	BorderType string `json:"borderType"`
}

type breaks struct {
	Breaks []axisBreak `json:"breaks,omitempty"`
	Area   *breakArea  `json:"breakArea,omitempty"`
}

func (e extent) breaks(gap string) breaks {
	from := e.resumes()
	if from == 0 {
		return breaks{}
	}
	look := opts.ItemStyle{Color: "var(--page)", BorderColor: "var(--edge)", Opacity: opts.Float(1)}
	return breaks{[]axisBreak{{0, from, gap}},
		&breakArea{ItemStyle: breakStyle{look, "solid"}, ZigzagAmplitude: 3}}
}

// broken puts the break of an axis of values into a chart's options: xAxis or yAxis.
func (e extent) broken(o map[string]any, axis string) map[string]any {
	switch all := o[axis].(type) {
	case []opts.YAxis:
		y := all[0]
		y.Scale, y.Min = nil, 0
		o[axis] = []any{struct {
			opts.YAxis
			breaks
		}{y, e.breaks("10%")}} // as high as the words beside it
	case []opts.XAxis:
		x := all[0]
		x.Scale, x.Min = nil, 0
		o[axis] = []any{struct {
			opts.XAxis
			breaks
		}{x, e.breaks("6%")}}
	}
	return o
}

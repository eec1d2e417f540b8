package browser

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/depth"
	"llmparity/internal/kit/whole"
	"llmparity/internal/record"
)

// reach is what the adapter did at most, by kernels of ours: bytes that a copy read and wrote, and operations.
type reach struct {
	Bytes      int64   `json:"bytes"`
	CopyNS     float64 `json:"copyNs"`
	Flop       float64 `json:"flop"`
	MultiplyNS float64 `json:"multiplyNs"`
}

// into adds what the adapter does at most, and how much of it the kernels of decode reached.
func (r *reach) into(p *depth.Profile) {
	if r == nil || r.CopyNS <= 0 || r.MultiplyNS <= 0 {
		p.Notes = append(p.Notes, "what the adapter does at most is unknown: no memory was left to measure it")
		return
	}
	add := func(role depth.Role, kernel string, ns float64, bytes int64) {
		p.Add(depth.Row{Phase: depth.Adapter, Layer: depth.NoLayer, Role: role, Kernel: kernel, Calls: 1,
			Self: time.Duration(ns), Bytes: bytes})
	}
	add(depth.Copy, "llmparity's copy", r.CopyNS, r.Bytes)
	add(depth.Matrix, fmt.Sprintf("llmparity's multiplication, %.0f operations", r.Flop), r.MultiplyNS, 0)
	most := float64(r.Bytes) / r.CopyNS // bytes per ns
	flops := r.Flop / r.MultiplyNS      // per ns
	p.Notes = append(p.Notes, fmt.Sprintf("at most, the adapter copies %.0f MiB/s and computes %.3g GFLOP/s, by kernels of "+
		"llmparity's own; memory limits a kernel with fewer than %.2g FLOP per byte", mibs(most), flops, flops/most))
	var shares []string
	for _, row := range depth.Kernels(p.Rows) {
		if row.Phase != record.Decode || row.Bytes == 0 || row.Self <= 0 || len(shares) == mostShares {
			continue
		}
		speed := float64(row.Bytes) / float64(row.Self)
		shares = append(shares, fmt.Sprintf("%s (%s) %.0f MiB/s, %.2g%%", row.Kernel, row.Role, mibs(speed),
			100*speed/most))
	}
	p.Notes = append(p.Notes, "bound bytes of decode's longest kernels per second, and their share of that copy: "+
		strings.Join(shares, "; "))
}

const mostShares = 6 // in a note

// mibs converts bytes per ns to MiB per second.
func mibs(speed float64) float64 { return speed * 1e9 / (1 << 20) }

// held is what was in WebGPU buffers at a page time.
type held struct {
	At     float64       `json:"at"`
	Groups []LedgerGroup `json:"groups"`
}

// writeHeld writes how the buffers of each kind grew, from the page's first one on.
func (k kernelTimes) writeHeld(p *depth.Profile, l *ledger, path string) error {
	if len(k.Held) == 0 {
		return nil
	}
	p.Files = append(p.Files, path)
	return whole.Write(path, func(w io.Writer) error {
		out := csv.NewWriter(w)
		rows := [][]string{{"ms", "kind", "bytes"}}
		for _, h := range k.Held {
			ms := strconv.FormatFloat(h.At-k.Held[0].At, 'f', 1, 64)
			for _, v := range l.kinds(h.Groups) {
				rows = append(rows, []string{ms, v.Name, strconv.FormatInt(int64(v.Value), 10)})
			}
		}
		return out.WriteAll(rows)
	})
}

// kinds sums up buffers by what they are for, as far as the engine tells.
func (l *ledger) kinds(groups []LedgerGroup) (out []record.Value) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.layout == nil {
		var sum int64
		for _, g := range groups {
			sum += g.Bytes * g.Count
		}
		return []record.Value{{Name: "all", Value: float64(sum)}}
	}
	for _, v := range l.layout.Parts(groups, -1) {
		if kind, ok := strings.CutSuffix(v.Name, "_bytes"); ok {
			out = append(out, record.Value{Name: kind, Value: v.Value})
		}
	}
	return out
}

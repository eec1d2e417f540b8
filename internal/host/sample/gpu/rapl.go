package gpu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"llmparity/internal/record"
)

// zone is a part of a CPU whose energy the kernel counts.
type zone struct {
	role  string // cpu0, cpu0.dram
	path  string // path of the counter
	limit float64
}

// findZones lists CPU packages, which include their cores, and their memory. denied says why counters can't be read,
// which on most systems only root can.
func findZones(sys string) (out []*zone, denied error) {
	root := filepath.Join(sys, "class/powercap")
	// AMD CPUs have the same name; the pattern is valid
	dirs, _ := filepath.Glob(filepath.Join(root, "intel-rapl:*"))
	slices.Sort(dirs)
	packages := map[string]string{} // role by folder
	for _, dir := range dirs {
		name := firstText(filepath.Join(dir, "name"))
		key, part, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), "intel-rapl:"), ":")
		z := &zone{path: filepath.Join(dir, "energy_uj")}
		switch {
		case part == "" && strings.HasPrefix(name, "package"):
			z.role = "cpu" + strings.TrimLeft(strings.TrimPrefix(name, "package"), "-")
			packages[key] = z.role
		case part != "" && name == "dram" && packages[key] != "":
			z.role = packages[key] + ".dram"
		default:
			continue
		}
		if _, err := readNumber(z.path); err != nil {
			if errors.Is(err, fs.ErrPermission) && denied == nil {
				denied = err
			}
			continue
		}
		z.limit, _ = readNumber(filepath.Join(dir, "max_energy_range_uj"))
		out = append(out, z)
	}
	return out, denied
}

// raplSource sums the increases of a zone's counter.
type raplSource struct {
	record.Source
	zone   *zone
	last   float64 // µJ
	at     time.Time
	joules float64
}

// Read returns energy from the first reading on, and power from the second.
func (s *raplSource) Read(_ context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	now, err := readNumber(s.zone.path)
	r.End = time.Now()
	if err != nil {
		return vanished(err)
	}
	if s.at.IsZero() {
		s.last, s.at = now, r.End
		r.Values = []record.Value{{Name: "energy_joules", Value: 0}}
		return nil
	}
	grown := now - s.last
	if grown < 0 {
		if !(s.zone.limit >= s.last) {
			return fmt.Errorf("energy counter went back from %.0f to %.0f µJ; its range is unknown", s.last, now)
		}
		grown += s.zone.limit + 1 // the limit is the highest count
	}
	s.joules += grown / 1e6
	r.Values = []record.Value{{Name: "energy_joules", Value: s.joules}}
	if d := r.End.Sub(s.at).Seconds(); d > 0 {
		r.Values = append(r.Values, record.Value{Name: "power_watts", Value: grown / 1e6 / d})
	}
	s.last, s.at = now, r.End
	return nil
}

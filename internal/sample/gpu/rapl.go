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
	"llmparity/internal/sample"
)

// zone is a part of a processor whose energy the kernel counts.
type zone struct {
	role  string // cpu0, cpu0.dram
	path  string // of the counter
	limit float64
}

// findZones lists packages and their memory; cores are within their package. Where the counters may not be read, which
// is so for all but root on most systems, it says why.
func findZones(sys string) (out []*zone, denied error) { return zonesBy(sys, readNumber) }

func zonesBy(sys string, read func(path string) (float64, error)) (out []*zone, denied error) {
	root := filepath.Join(sys, "class/powercap")
	// AMD's processors have the same name; the pattern is sound
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
		if _, err := read(z.path); err != nil {
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

func (z *zone) source() sample.Source { return &raplSource{zone: z} }

// raplSource adds up what a zone's counter grew by.
type raplSource struct {
	zone   *zone
	last   float64 // µJ
	at     time.Time
	joules float64
}

func (s *raplSource) Describe() record.Source {
	return record.Source{Role: s.zone.role, Method: RAPL, Every: raplEvery,
		Sees:  "energy that the processor says the zone took since the first reading, and the mean power since the last one",
		Blind: "which process; GPUs; a counter that wraps more than once between two reads"}
}

// Read tells energy from the first reading on, power from the second.
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
			return fmt.Errorf("its counter went back from %.0f to %.0f µJ, and where it wraps is not told", s.last, now)
		}
		grown += s.zone.limit + 1 // the limit is the highest number that it tells
	}
	s.joules += grown / 1e6
	r.Values = []record.Value{{Name: "energy_joules", Value: s.joules}}
	if d := r.End.Sub(s.at).Seconds(); d > 0 {
		r.Values = append(r.Values, record.Value{Name: "power_watts", Value: grown / 1e6 / d})
	}
	s.last, s.at = now, r.End
	return nil
}

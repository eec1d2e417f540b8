package watch

import (
	"fmt"
	"time"

	"llmparity/internal/kit/words"
	"llmparity/internal/record"
)

// Summary is the result of watching.
type Summary struct {
	Length    time.Duration
	Samples   int
	Rows      int
	Processes int // all processes seen
	PeakRSS   int64
	// PeakPSS is carried forward between readings, and LeastPSS and MostPSS are its bounds; record.Absent: never read.
	PeakPSS, LeastPSS, MostPSS int64
	ReadPSS                    int // how often PSS was read

	Longest time.Duration // longest time between two samples
	CPU     time.Duration // CPU time of this program; 0: unknown
	Why     string        // why watching ended
	GPUs    []string      // lines about GPUs
	GPURows int

	// CommandRSS is the kernel's highest RSS of the command or of a process that it waited for; record.Absent: unknown.
	CommandRSS int64
}

// peak takes a total of PSS, with its bounds.
func (s *Summary) peak(pss, least, most int64) {
	s.PeakPSS, s.LeastPSS, s.MostPSS = max(s.PeakPSS, pss), max(s.LeastPSS, least), max(s.MostPSS, most)
}

// bounds says how far the peak of PSS is known; empty if it was read in every sample.
func (s Summary) bounds() string {
	least, most := size(s.LeastPSS), size(max(s.MostPSS, s.CommandRSS))
	if s.PeakPSS == record.Absent || least == most {
		return ""
	}
	return fmt.Sprintf("PSS was read %s and carried forward: its peak is at least %s and at most %s",
		words.Count(s.ReadPSS, "time"), least, most)
}

// Lines describes the summary.
func (s Summary) Lines() []string {
	out := []string{fmt.Sprintf("watched %s for %.1f s: %s, at most %v apart; %s", words.Count(s.Processes, "process"),
		s.Length.Seconds(), words.Count(s.Samples, "sample"), s.Longest.Round(time.Millisecond), s.Why)}
	if s.Samples == 0 {
		return out
	}
	out = append(out, fmt.Sprintf("peak RSS %s, peak PSS %s (totals; RSS counts shared pages once for each process)",
		size(s.PeakRSS), size(s.PeakPSS)))
	if words := s.bounds(); words != "" {
		out = append(out, words)
	}
	if s.CommandRSS != record.Absent {
		out = append(out, "highest RSS of a single process (ru_maxrss): "+size(s.CommandRSS))
	}
	out = append(out, s.GPUs...)
	if s.CPU > 0 {
		out = append(out, fmt.Sprintf("cost of watching: %.2f%% of a core, %.0f µs per sample",
			100*s.CPU.Seconds()/max(s.Length.Seconds(), 1e-9), float64(s.CPU.Microseconds())/float64(s.Samples)))
	}
	return out
}

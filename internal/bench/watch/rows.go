package watch

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// Columns are the columns of the rows, one for each process and sample; empty: not read. All rows of a sample have its
// time. pss_mb, uss_mb, swap_mb and hwm_mb (the process's highest RSS so far) were read pss_age_ms earlier.
const Columns = "timestamp,label,pid,rss_mb,vms_mb,pss_mb,uss_mb,swap_mb,hwm_mb,pss_age_ms,sample,start,name"

// stamp is the time format, as in the record.
const stamp = "2006-01-02T15:04:05.000000Z07:00"

// Rows writes rows to a file, sample by sample: a kill loses no complete sample.
type Rows struct {
	to    io.Writer
	file  *os.File // nil: not ours
	label string
	buf   bytes.Buffer
	csv   *csv.Writer // to buf
	size  int64       // of complete samples
	rows  int         // in buf
	lost  bool        // a write failed
}

// Create creates a file of rows with these columns. It overwrites an existing file only if overwrite is set. Pipes and
// devices are written to.
func Create(path, label, columns string, overwrite bool) (*Rows, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if info, err := os.Stat(path); !overwrite && (err != nil || info.Mode().IsRegular()) {
		flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	}
	f, err := os.OpenFile(path, flags, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, fault.New(fault.Usage, "name another file, or use --overwrite", "%s exists", path)
	case err != nil:
		return nil, fault.WriteError(err, path, "name another file with --output")
	}
	r := To(f, label, columns)
	r.file = f
	return r, nil
}

// To writes rows to an open writer.
func To(w io.Writer, label, columns string) *Rows {
	r := &Rows{to: w, label: label}
	r.csv = csv.NewWriter(&r.buf)
	r.buf.WriteString(columns + "\n")
	return r
}

// Close closes the file, and removes it if it has no samples.
func (r *Rows) Close() error {
	if r == nil || r.file == nil {
		return nil
	}
	info, err := r.file.Stat()
	if r.size == 0 && err == nil && info.Mode().IsRegular() {
		return errors.Join(r.file.Close(), os.Remove(r.file.Name()))
	}
	return r.file.Close()
}

// add adds a row about a process to the sample.
func (r *Rows) add(at time.Time, n int, who *process, s *record.Sample) {
	pss, age := record.NewSample(), ""
	if d := who.read; d != nil {
		pss, age = *d, strconv.FormatFloat(float64(at.Sub(d.Begin).Microseconds())/1000, 'f', 1, 64)
	}
	r.row(at.Format(stamp), r.label, strconv.Itoa(who.PID), mb(s.RSS), mb(s.VMS), mb(pss.PSS), mb(pss.USS),
		mb(pss.Swap), mb(pss.HWM), age, strconv.Itoa(n), strconv.FormatUint(who.Start, 10), who.Name)
}

// row adds a row. The kernel cuts long names, even within a character.
func (r *Rows) row(fields ...string) {
	for i, f := range fields {
		fields[i] = strings.ToValidUTF8(f, "\uFFFD")
	}
	_ = r.csv.Write(fields) // to memory
	r.rows++
}

// mb formats a size in MiB; an absent one is empty.
func mb(bytes int64) string {
	if bytes == record.Absent {
		return ""
	}
	return strconv.FormatFloat(float64(bytes)/record.MiB, 'f', 4, 64)
}

// flush writes a sample and returns its number of rows. An incomplete sample is removed again.
func (r *Rows) flush() (rows int, err error) {
	if r == nil || r.rows == 0 || r.lost {
		return 0, nil
	}
	r.csv.Flush()
	n, err := r.to.Write(r.buf.Bytes())
	if err == nil {
		r.size += int64(n)
		rows, r.rows = r.rows, 0
		r.buf.Reset()
		return rows, nil
	}
	r.lost = true
	path := "rows"
	if r.file != nil {
		path = r.file.Name()
		if r.file.Truncate(r.size) != nil {
			err = fmt.Errorf("%w (the last row may be incomplete)", err)
		}
	}
	return 0, fault.WriteError(err, path, "name another file with --output; the rows so far are complete")
}

package watch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/fault"
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
	fresh bool     // newly created
	old   bool     // has content to overwrite
	label string   // quoted
	buf   []byte
	size  int64 // of complete samples
	rows  int   // in buf
	lost  bool  // a write failed
	when  time.Time
	stamp []byte // when, formatted
}

// Create creates a file of rows. It overwrites an existing file only if overwrite is set. Pipes and devices are written
// to.
func Create(path, label string, overwrite bool) (*Rows, error) {
	return create(path, label, Columns, overwrite)
}

// CreateGPU creates a file of rows about GPUs.
func CreateGPU(path, label string, overwrite bool) (*Rows, error) {
	return create(path, label, GPUColumns, overwrite)
}

func create(path, label, columns string, overwrite bool) (*Rows, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	fresh := err == nil
	old := false
	if errors.Is(err, fs.ErrExist) {
		info, gone := os.Stat(path)
		old = gone == nil && info.Mode().IsRegular()
		if old && !overwrite {
			return nil, fault.New(fault.Usage, "name another file, or use --overwrite", "%s exists", path)
		}
		f, err = os.OpenFile(path, os.O_WRONLY, 0)
	}
	if err != nil {
		return nil, fault.WriteError(err, path, "name another file with --output")
	}
	r := to(f, label, columns)
	r.file, r.fresh, r.old = f, fresh, old
	return r, nil
}

// To writes rows to an open writer.
func To(w io.Writer, label string) *Rows { return to(w, label, Columns) }

func to(w io.Writer, label, columns string) *Rows {
	return &Rows{to: w, label: field(label), buf: append(make([]byte, 0, 1<<14), columns+"\n"...)}
}

// Close closes the file. Without samples, a new file is removed and an old one unchanged.
func (r *Rows) Close() error {
	if r == nil || r.file == nil {
		return nil
	}
	if r.size == 0 && r.fresh {
		return errors.Join(r.file.Close(), os.Remove(r.file.Name()))
	}
	return r.file.Close()
}

// add adds a row to the sample.
func (r *Rows) add(at time.Time, n int, who *process, s *record.Sample) {
	if !at.Equal(r.when) {
		r.when, r.stamp = at, at.AppendFormat(r.stamp[:0], stamp)
	}
	b := append(r.buf, r.stamp...)
	b = append(append(append(b, ','), r.label...), ',')
	b = append(strconv.AppendInt(b, int64(who.PID), 10), ',')
	b = mb(mb(b, s.RSS), s.VMS)
	if d := who.read; d != nil {
		b = mb(mb(mb(mb(b, d.PSS), d.USS), d.Swap), d.HWM)
		b = append(strconv.AppendFloat(b, float64(at.Sub(d.Begin).Microseconds())/1000, 'f', 1, 64), ',')
	} else {
		b = append(b, ",,,,,"...)
	}
	b = append(strconv.AppendInt(b, int64(n), 10), ',')
	b = append(strconv.AppendUint(b, who.Start, 10), ',')
	b = append(append(b, field(who.Name)...), '\n')
	r.buf = b
	r.rows++
}

// mb appends a size in MiB and a comma; an absent one is an empty field.
func mb(b []byte, bytes int64) []byte {
	if bytes != record.Absent {
		b = strconv.AppendFloat(b, float64(bytes)/record.MiB, 'f', 4, 64)
	}
	return append(b, ',')
}

// field quotes a CSV field. The kernel cuts long names, even within a character.
func field(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.ContainsAny(s, ",\"\r\n") {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// flush writes a sample and returns its number of rows. An incomplete sample is removed again.
func (r *Rows) flush() (rows int, err error) {
	if r.rows == 0 || r.lost {
		return 0, nil
	}
	if r.old {
		if err := r.file.Truncate(0); err != nil {
			return 0, fault.WriteError(err, r.file.Name(), "name another file with --output")
		}
		r.old = false
	}
	n, err := r.to.Write(r.buf)
	if err == nil {
		r.size += int64(n)
		rows, r.rows, r.buf = r.rows, 0, r.buf[:0]
		return rows, nil
	}
	r.lost = true
	if r.file != nil && r.file.Truncate(r.size) != nil {
		err = fmt.Errorf("%w (the last row may be incomplete)", err)
	}
	path := "rows"
	if r.file != nil {
		path = r.file.Name()
	}
	return 0, fault.WriteError(err, path, "name another file with --output; the rows so far are complete")
}

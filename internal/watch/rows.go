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

// Columns are those of the rows: one a process and sample. Those that were not read are empty. All rows of a sample
// have its time; pss_mb, uss_mb, swap_mb and hwm_mb (the highest RSS of the process so far, by the kernel) were read
// pss_age_ms before it.
const Columns = "timestamp,label,pid,rss_mb,vms_mb,pss_mb,uss_mb,swap_mb,hwm_mb,pss_age_ms,sample,start,name"

// stamp is RFC 3339 with zone, as in the record.
const stamp = "2006-01-02T15:04:05.000000Z07:00"

// Rows is a file of rows. They are handed to the system at the end of every sample: a kill loses none that came before.
type Rows struct {
	to    io.Writer
	file  *os.File // nil: somebody else's
	fresh bool     // it was made for this
	old   bool     // it has what is to be overwritten
	label string   // as a field
	buf   []byte
	size  int64 // whole samples
	rows  int   // in buf
	lost  bool  // something could not be written
	when  time.Time
	stamp []byte // of when
}

// Create makes a file of rows; one that exists is kept unless it is to be overwritten. A pipe or a device is written
// to.
func Create(path, label string, overwrite bool) (*Rows, error) {
	return create(path, label, Columns, overwrite)
}

// CreateGPU makes one of rows about GPUs.
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
			return nil, fault.New(fault.Usage, "name another file, or give --overwrite", "%s exists", path)
		}
		f, err = os.OpenFile(path, os.O_WRONLY, 0)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unwritable, err, "name another file with --output", "can't write rows")
	}
	r := to(f, label, columns)
	r.file, r.fresh, r.old = f, fresh, old
	return r, nil
}

// To writes rows to what is open already.
func To(w io.Writer, label string) *Rows { return to(w, label, Columns) }

func to(w io.Writer, label, columns string) *Rows {
	return &Rows{to: w, label: field(label), buf: append(make([]byte, 0, 1<<14), columns+"\n"...)}
}

// Close closes the file. Without a sample it is as it was, or is not there.
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

// mb appends a figure in MiB and a comma; an absent one leaves the field empty.
func mb(b []byte, bytes int64) []byte {
	if bytes != record.Absent {
		b = strconv.AppendFloat(b, float64(bytes)/record.MiB, 'f', 4, 64)
	}
	return append(b, ',')
}

// field is text as a field of CSV. The system cuts names off wherever they are too long.
func field(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.ContainsAny(s, ",\"\r\n") {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// flush ends a sample, and says how many rows it had. Of one that can't be written whole nothing is left in the file.
func (r *Rows) flush() (rows int, err error) {
	if r.rows == 0 || r.lost {
		return 0, nil
	}
	if r.old {
		if err := r.file.Truncate(0); err != nil {
			return 0, fault.Wrap(fault.Unwritable, err, "name another file with --output", "can't overwrite rows")
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
		err = fmt.Errorf("%w (and the last row may be cut off)", err)
	}
	path := "rows"
	if r.file != nil {
		path = r.file.Name()
	}
	return 0, fault.WriteError(err, path, "name another file with --output; the rows so far are complete")
}

// Package lines reads and writes files of lines, CSV or JSON, that only grow: they are written while a run happens, may
// be cut by a kill, are continued by another process, and are read at any time. Fields must not contain line breaks.
package lines

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"llmparity/internal/kit/fault"
)

// Appender appends lines to a file.
type Appender struct {
	file   *os.File
	buf    *bufio.Writer
	size   int64 // including the buffer
	synced int64 // size at the last sync
}

const bufferSize = 64 << 10

// To returns an appender to an open file.
func To(f *os.File) *Appender { return &Appender{file: f, buf: bufio.NewWriterSize(f, bufferSize)} }

// Create creates a file, with a header if columns is not nil.
func Create(path string, columns []string) (*Appender, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	a := To(f)
	if columns != nil {
		err = a.header(columns)
	}
	return a, err
}

// header writes the header unbuffered, because the file can't be read without it.
func (a *Appender) header(columns []string) error {
	n, err := a.file.WriteString(strings.Join(columns, ",") + "\n")
	a.size = int64(n)
	return err
}

// Size is the size of the file, including buffered lines.
func (a *Appender) Size() int64 { return a.size }

// Available is the free space of the buffer. A longer line flushes it.
func (a *Appender) Available() int { return a.buf.Available() }

// Write appends a line to the buffer.
func (a *Appender) Write(line []byte) error {
	_, err := a.buf.Write(line)
	if err == nil {
		a.size += int64(len(line))
	}
	return err
}

// Flush hands buffered lines to the system, where a kill can't lose them.
func (a *Appender) Flush() error { return a.buf.Flush() }

// Sync writes flushed lines to the disk, where a power failure can't lose them.
func (a *Appender) Sync() error {
	if a.synced == a.size {
		return nil
	}
	a.synced = a.size
	return a.file.Sync()
}

// Close closes the file without flushing.
func (a *Appender) Close() error { return a.file.Close() }

// Reopen cuts a file after its last complete line, to append there. A file with other columns is refused.
func Reopen(path string, columns []string) (*Appender, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	a := To(f)
	a.synced = -1 // the cut must reach the disk, too
	if a.size, err = wholeLines(f); err != nil {
		return a, err
	}
	if a.size > 0 && columns != nil {
		header, err := bufio.NewReader(f).ReadString('\n')
		if err == nil && header != strings.Join(columns, ",")+"\n" {
			err = fault.New(fault.BadRecord, "start a new run with the plan that `llmparity reproduce` writes",
				"%s: can't resume: its columns differ from this version's", path)
		}
		if err != nil {
			return a, err
		}
	}
	if err = f.Truncate(a.size); err == nil && a.size == 0 && columns != nil {
		err = a.header(columns)
	}
	return a, err
}

// Integers appends fields of numbers, each followed by a comma, to a CSV line.
func Integers(line []byte, all ...int64) []byte {
	for _, n := range all {
		line = append(strconv.AppendInt(line, n, 10), ',')
	}
	return line
}

// Text appends a field, followed by a comma. It replaces line breaks, which users may put into labels: readers find
// complete rows by newlines.
func Text(line []byte, s string) []byte {
	s = lineBreaks.Replace(s)
	if strings.ContainsAny(s, ",\"") {
		s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return append(append(line, s...), ',')
}

var lineBreaks = strings.NewReplacer("\n", " ", "\r", " ")

// End replaces the last comma by a newline.
func End(line []byte) []byte {
	line[len(line)-1] = '\n'
	return line
}

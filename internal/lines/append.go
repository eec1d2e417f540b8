// Package lines reads and writes files of lines, CSV or JSON, that only grow: they are written while a run happens, may
// be cut by a kill, are continued by another process, and are read at any time. Fields must not contain line breaks.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"llmparity/internal/fault"
	"llmparity/internal/whole"
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

// Tail calls f with the fields of each of the last rows, some 64 KiB of them, without the header.
func (a *Appender) Tail(f func(fields [][]byte)) error {
	part := make([]byte, min(a.size, block))
	if _, err := a.file.ReadAt(part, a.size-int64(len(part))); err != nil {
		return err
	}
	if _, rest, ok := bytes.Cut(part, []byte("\n")); ok {
		part = rest // skip the header or a partial row
	}
	var r Row
	for line := range bytes.Lines(part) {
		if r.split(bytes.TrimSuffix(line, []byte("\n"))) == nil { // else the reader reports it
			f(r.fields)
		}
	}
	return nil
}

// Reopen cuts a file after its last complete line, to append there. It creates files that older versions lack.
func Reopen(path string, columns []string) (*Appender, error) {
	if columns != nil {
		if err := widen(path, columns); errors.Is(err, os.ErrNotExist) {
			return Create(path, columns)
		} else if err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	a := To(f)
	a.synced = -1 // the cut must reach the disk, too
	if a.size, err = wholeLines(f); err == nil {
		err = f.Truncate(a.size)
	}
	if err == nil && a.size == 0 && columns != nil {
		err = a.header(columns)
	}
	return a, err
}

// widen adds columns to a file that an older version wrote; they are empty in its rows.
func widen(path string, columns []string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := wholeLines(f)
	if err != nil {
		return err
	}
	lines := bufio.NewReader(io.NewSectionReader(f, 0, size))
	header, err := lines.ReadString('\n')
	has := strings.Split(strings.TrimSuffix(header, "\n"), ",")
	switch {
	case errors.Is(err, io.EOF) || slices.Equal(has, columns): // an empty file gets its header later
		return nil
	case err != nil:
		return err
	case len(has) > len(columns) || !slices.Equal(has, columns[:len(has)]):
		return fault.New(fault.BadRecord, "start a new run with the plan that `llmparity reproduce` writes",
			"%s: can't resume: its columns differ from this version's", path)
	}
	return whole.Write(path, func(to io.Writer) error {
		out := bufio.NewWriter(to)
		out.WriteString(strings.Join(columns, ",") + "\n")
		for {
			row, err := lines.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				return out.Flush()
			}
			if err != nil {
				return err
			}
			out.Write(bytes.TrimSuffix(row, []byte("\n")))
			out.WriteString(strings.Repeat(",", len(columns)-len(has)) + "\n")
		}
	})
}

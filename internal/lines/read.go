package lines

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"

	"llmparity/internal/fault"
)

// Each calls f for every complete line of a file; f must not keep the line. cut says that the last line has no end.
func Each(path string, f func(line []byte) error) (cut bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 256<<10), math.MaxInt)
	lines.Split(func(data []byte, atEOF bool) (advance int, line []byte, err error) {
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			return i + 1, data[:i], nil
		}
		cut = atEOF && len(data) > 0
		return 0, nil, nil
	})
	n := 1
	for ; err == nil && lines.Scan(); n++ {
		err = f(lines.Bytes())
	}
	if err == nil {
		err = lines.Err()
	}
	if err != nil {
		return false, fault.Wrap(fault.BadRecord, err, "", "%s line %d", path, n-1)
	}
	return cut, nil
}

// EachRow reads a CSV file in which each row is one line. take gets the header and returns what reads a row.
func EachRow(path string, take func(Header) func(*Row) error) (cut bool, err error) {
	var r Row
	var add func(*Row) error
	columns := 0
	return Each(path, func(line []byte) error {
		if err := r.split(line); err != nil {
			return err
		}
		if add == nil {
			h, err := newHeader(r.fields)
			if err != nil {
				return err
			}
			columns, add = len(r.fields), take(h)
			return nil
		}
		if len(r.fields) != columns {
			return fmt.Errorf("%d fields, but the header has %d", len(r.fields), columns)
		}
		return add(&r)
	})
}

// block is how much is read at once to find the end of a file.
const block = 64 << 10

// wholeLines returns where the last complete line ends: a kill may have cut a line, and a power failure may leave
// zeros.
func wholeLines(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	buffer := make([]byte, block)
	for end := info.Size(); end > 0; {
		start := max(0, end-block)
		part := buffer[:end-start]
		if _, err := f.ReadAt(part, start); err != nil {
			return 0, err
		}
		if zero := bytes.IndexByte(part, 0); zero >= 0 {
			end = start + int64(zero)
			continue
		}
		if newline := bytes.LastIndexByte(part, '\n'); newline >= 0 {
			return start + int64(newline) + 1, nil
		}
		end = start
	}
	return 0, nil
}

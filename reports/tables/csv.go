package tables

import (
	"bufio"
	"fmt"
	"io"

	"llmparity/compare"
)

// CSV writes a table of an export: a header, and lines that hold a row each.
func CSV(w io.Writer, t Table) error {
	b := bufio.NewWriterSize(w, 64<<10)
	var line []byte
	for i, c := range t.Columns {
		line = append(appendText(line, c.Name), separator(i, len(t.Columns)))
	}
	_, err := b.Write(line)
	if err == nil {
		err = t.Rows(func(row []Value) error {
			line = line[:0]
			for i, v := range row {
				line = append(appendField(line, t.Columns[i].Kind, v), separator(i, len(row)))
			}
			_, err := b.Write(line)
			return err
		})
	}
	if err == nil {
		err = b.Flush()
	}
	if err != nil {
		return fmt.Errorf("writing %s.csv: %w", t.Name, err)
	}
	return nil
}

func separator(i, n int) byte {
	if i == n-1 {
		return '\n'
	}
	return ','
}

// Summary writes summary.csv, a row a cell.
func Summary(w io.Writer, res *compare.Result) error { return CSV(w, Of(res)[0]) }

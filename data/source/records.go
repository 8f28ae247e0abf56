package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// Records writes the records of a file as JSON lines: of a table in Parquet, or of a file that has
// them as such.
func Records(path string, to io.Writer) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if !strings.HasSuffix(path, ".parquet") {
		_, err = io.Copy(to, f)
		return err
	}
	defer func() { // the library panics on some damaged files
		if v := recover(); v != nil {
			err = fmt.Errorf("the file is damaged: %v", v)
		}
		if err != nil {
			err = fmt.Errorf("%q: %w", path, err)
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	table, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return err
	}
	rows := parquet.NewGenericReader[any](table, table.Schema())
	defer rows.Close()
	out := json.NewEncoder(to)
	for buf := make([]any, recordsAtOnce); ; {
		n, err := rows.Read(buf)
		for _, record := range buf[:n] {
			if err := out.Encode(record); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n == 0:
			return io.ErrNoProgress
		}
		clear(buf)
	}
}

// recordsAtOnce bounds the records of a table that are in memory.
const recordsAtOnce = 64

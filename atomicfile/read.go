package atomicfile

import (
	"fmt"
	"io"
	"os"
)

// ReadBounded reads a file of at most most bytes.
func ReadBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, fmt.Errorf("%q has more than %d bytes", path, most)
	}
	return b, nil
}

package statefile

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/entrain-network/entrain/merkle"
)

// BenchmarkSaveBlob writes the parameters of models of 124 and 350 million, and as many bytes with
// nothing but a write and a sync.
func BenchmarkSaveBlob(b *testing.B) {
	for _, millions := range []int{124, 350} {
		data := make([]byte, 4*millions*1_000_000)
		for i := 0; i < len(data); i += 512 { // no file system stores it as zeros
			data[i] = byte(i >> 9)
		}
		root := merkle.BlobRoot(data)
		b.Run(fmt.Sprintf("%dm/file", millions), func(b *testing.B) {
			s := New(filepath.Join(b.TempDir(), "state"), 0, 0)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := s.SaveBlob(root, data); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%dm/raw", millions), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "raw")
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := raw(path, data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func raw(path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}

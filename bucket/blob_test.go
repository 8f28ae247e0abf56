package bucket

import (
	"bytes"
	"testing"

	"github.com/entrain-network/entrain/merkle"
	_ "github.com/entrain-network/entrain/tests/heap"
	_ "github.com/entrain-network/entrain/tests/ramdisk"
	"github.com/entrain-network/entrain/wire"
)

// An index that is taken is the list under the root, byte for byte.
func FuzzParseIndex(f *testing.F) {
	one := appendIndex(nil, index([]byte("one part")))
	f.Add(one, []byte(nil))
	f.Add(append(bytes.Clone(one), one...), []byte{1})
	f.Add([]byte{}, []byte(nil))
	f.Add(one[:31], []byte(nil))
	f.Fuzz(func(t *testing.T, b, damage []byte) {
		var root wire.Hash
		if n := len(b) / len(root); n > 0 && len(b)%len(root) == 0 {
			list := make([]wire.Hash, n)
			for i := range list {
				list[i] = wire.Hash(b[i*len(root):])
			}
			root = merkle.Root(list)
		}
		for i, d := range damage {
			root[i%len(root)] ^= d
		}
		roots, err := parseIndex(b, root)
		if err != nil {
			if roots != nil {
				t.Errorf("an error, and %d roots", len(roots))
			}
			return
		}
		if !bytes.Equal(appendIndex(nil, roots), b) || merkle.Root(roots) != root {
			t.Errorf("%x is read as other roots", b)
		}
	})
}

package data_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("row, row, row your boat\ngently down the stream\n"), 0o600); err != nil {
		panic(err)
	}

	set := filepath.Join(dir, "set")
	manifest, err := data.Prepare(ctx, set, []string{text}, data.PrepareOptions{Name: "boat", Tokenizer: tokenizer.Bytes{}, HeldOutPermille: 500})
	if err != nil {
		panic(err)
	}
	s, err := data.Open(ctx, set, manifest.Hash(), data.Options{SequenceTokens: 5, Seed: wire.Hash{7}})
	if err != nil {
		panic(err)
	}
	sequence := make([]uint32, 6)
	for i := range s.Len() + 2 { // a pass, and the begin of the next, which has another order
		if err := s.Read(i, sequence); err != nil {
			panic(err)
		}
		b, err := tokenizer.Bytes{}.Decode(nil, sequence)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%d %q\n", i, b)
	}
	// Output:
	// 0 "stream"
	// 1 " the s"
	// 2 "row, r"
	// 3 "row, r"
	// 4 " down "
	// 5 "oat\nge"
	// 6 "row yo"
	// 7 "our bo"
	// 8 "ently "
	// 9 "row yo"
	// 10 "our bo"
}

// Command logits prints a model's logits for the token after a text, as JSON, for comparison
// with other software:
//
//	go run ./tests/interop/logits CHECKPOINT TEXT
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/tokenizer"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: logits CHECKPOINT TEXT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "logits:", err)
		os.Exit(1)
	}
}

func run(dir, text string) error {
	fsys := os.DirFS(dir)
	saved, err := checkpoint.OpenLocal(fsys)
	if errors.Is(err, fs.ErrNotExist) { // written by other software
		saved, err = checkpoint.Import(fsys)
	}
	if err != nil {
		return err
	}
	config := model.LlamaConfig(saved.Config)
	params := make([]float32, config.Layout().Len())
	if err := saved.Params(config.Layout(), params); err != nil {
		return err
	}
	file, err := saved.File(checkpoint.TokenizerFile, tokenizer.JSONBytesMax)
	if err != nil {
		return err
	}
	words, err := tokenizer.Parse(file)
	if err != nil {
		return err
	}
	reader, err := llama.NewGenerator(config, params, exact.NewPool(1))
	if err != nil {
		return err
	}
	tokens := words.Encode(nil, []byte(text))
	logits, err := reader.Read(tokens...)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"tokens": tokens, "logits": logits})
}

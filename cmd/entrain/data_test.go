package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/wire"
)

func TestDataIsPreparedFromDocumentsWithATokenizerOfItsOwn(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	var lines strings.Builder
	for i := range 400 {
		fmt.Fprintf(&lines, "{\"id\":%d,\"body\":\"All that glisters is not gold, %d times out of ten.\"}\n", i, i)
	}
	if err := os.MkdirAll(filepath.Join(dir, "repo", "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "repo", "data", "train-00000-of-00001.jsonl"), lines.String())
	writeFile(t, filepath.Join(dir, "repo", "data", "test-00000-of-00001.jsonl"), "{}\n")
	repo, set := filepath.Join(dir, "repo"), filepath.Join(dir, "set")
	hash := strings.TrimSpace(s.ok("data", "prepare", "-o", set, "--name", "x", "--field", "body", "--tokenizer", "train:300", repo))
	var shown struct {
		Manifest  string `json:"manifest"`
		Tokenizer string `json:"tokenizer"`
		Tokens    uint64 `json:"tokens"`
	}
	if err := json.Unmarshal([]byte(s.ok("data", "show", set, "--json", "--verify")), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Manifest != hash || shown.Tokenizer != "bpe-300" || shown.Tokens > 400*30 {
		t.Errorf("data show: %+v, data prepare printed %s", shown, hash)
	}
	// Another set with the same tokenizer, by the directory that has it.
	again := strings.TrimSpace(s.ok("data", "prepare", "-o", filepath.Join(dir, "again"), "--name", "x", "--field", "body", "--tokenizer", set, repo))
	if again != hash {
		t.Errorf("the same documents gave %s and %s", hash, again)
	}
	file := filepath.Join(repo, "data", "train-00000-of-00001.jsonl")
	if out := s.ok("data", "show", file, "--field", "body"); !strings.Contains(out, "documents in \"body\": 400") || !strings.Contains(out, "glisters") {
		t.Errorf("data show FILE printed %q", out)
	}
	s.fails([]string{"data", "prepare", "-o", filepath.Join(dir, "bad"), repo}, "line 1", "text, messages", "body, id")
	s.fails([]string{"data", "prepare", "-o", filepath.Join(dir, "bad"), "--tokenizer", "train:many", repo}, "train:32000")
	s.fails([]string{"data", "prepare", "-o", filepath.Join(dir, "bad"), "--tokenizer", file, repo}, "tokenizer.json")
	s.fails([]string{"data", "prepare", "-o", filepath.Join(dir, "bad"), "--tokenizer", filepath.Join(dir, "none"), repo}, "none")
	s.fails([]string{"data", "prepare", "-o", filepath.Join(dir, "bad"), "--split", "half", repo}, "train, validation or test")
}

func TestDataIsOpenedWhereverItIs(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	book := writeFile(t, filepath.Join(dir, "book.txt"), strings.Repeat("All that glisters is not gold.\n", 1000))
	hash, err := wire.ParseHash(strings.TrimSpace(s.ok("data", "prepare", "-o", filepath.Join(dir, "set"), book)))
	if err != nil {
		t.Fatal(err)
	}
	host := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer host.Close()
	for _, location := range []string{filepath.Join(dir, "set"), host.URL + "/set", host.URL + "/none " + host.URL + "/set/"} {
		set, err := trainer.OpenData(t.Context(), data.Place{Location: location}, hash, data.Options{SequenceTokens: 30})
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]uint32, 31)
		if err := set.HeldOut().Read(0, dst); err != nil || dst[0] != 'A' {
			t.Errorf("%s: got %v, %v", location, dst, err)
		}
		set.Close()
	}
}

func TestDataIsServedUntilTheCommandEnds(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	book := writeFile(t, filepath.Join(dir, "book.txt"), strings.Repeat("All that glisters is not gold.\n", 1000))
	hash, err := wire.ParseHash(strings.TrimSpace(s.ok("data", "prepare", "-o", filepath.Join(dir, "set"), book)))
	if err != nil {
		t.Fatal(err)
	}
	out, lines := io.Pipe()
	c := s.console
	c.out = lines
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, c, []string{"data", "publish", filepath.Join(dir, "set"), "--addr", "127.0.0.1:0"})
		lines.CloseWithError(err)
		ended <- err
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	set, err := trainer.OpenData(t.Context(), data.Place{Location: strings.TrimSpace(address)}, hash, data.Options{SequenceTokens: 30})
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]uint32, 31)
	if err := set.Read(3, dst); err != nil {
		t.Error(err)
	}
	set.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended by Ctrl-C: %v", err)
	}
	s.fails([]string{"data", "publish", dir}, "manifest")
}

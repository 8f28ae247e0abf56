package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestBucketCheck(t *testing.T) {
	own, public, _ := startBuckets(t)
	s := newShell(t)
	write := writeFile(t, filepath.Join(t.TempDir(), "write"), own.URL()+"\n")
	read := writeFile(t, filepath.Join(t.TempDir(), "read"), public.URL()+"\n")
	_, words, err := s.run("join", "--check", "--private-buckets", "--bucket", write, "--bucket-read", read)
	if err != nil || strings.Contains(words, "NO") || !strings.Contains(words, "yes  the published credentials cannot write") || !strings.Contains(words, "the bucket is fit") {
		t.Errorf("a good bucket: %v\n%s", err, words)
	}
	out, words, err := s.run("join", "--check", "--private-buckets", "--json", "--bucket", write, "--bucket-read", write)
	if err == nil || !strings.Contains(out, `{"finding":"the published credentials cannot write","ok":false,"reason":"they wrote an object`) {
		t.Errorf("credentials that write, published: %v\n%s%s", err, out, words)
	}
	if _, words, err = s.run("join", "--check", "--private-buckets", "--bucket", write, "--bucket-read", filepath.Join(t.TempDir(), "none")); err == nil {
		t.Errorf("a location that is nowhere: %s", words)
	}
	if strings.Contains(out+words+err.Error(), string(own.SecretKey)) {
		t.Error("the secret is printed")
	}
}

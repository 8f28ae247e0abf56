package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/key/keyfile"
)

func TestKeyCommands(t *testing.T) {
	s := newShell(t)
	s.fails([]string{"key", "show"}, "no such file", "entrain key new --key")
	made := strings.TrimSpace(s.ok("key", "new"))
	s.fails([]string{"key", "new"}, "already exists")
	if got := strings.TrimSpace(s.ok("key", "show")); got != made {
		t.Errorf("key show prints %q, key new printed %q", got, made)
	}
	other := filepath.Join(t.TempDir(), "other")
	second := strings.TrimSpace(s.ok("key", "new", "--key", other))
	s.env["ENTRAIN_KEY_FILE"] = other
	var shown struct {
		Public      key.Public `json:"public"`
		Fingerprint string     `json:"fingerprint"`
		File        string     `json:"file"`
	}
	if err := json.Unmarshal([]byte(s.ok("key", "show", "--json")), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Public.String() != second || second == made || shown.File != other || !strings.HasPrefix(shown.Fingerprint, "SHA256:") {
		t.Errorf("with $ENTRAIN_KEY_FILE, key show prints %+v; want %s", shown, second)
	}
	s.fails([]string{"key", "new", "--key", filepath.Join(t.TempDir(), "x"), "--passphrase"}, keyfile.ErrPassphrase.Error())
}

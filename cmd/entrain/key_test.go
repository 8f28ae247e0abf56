package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/entrain-network/entrain/key"
)

func noPassphrase(string) ([]byte, error) { return nil, errPassphrase }

func TestKeyFileComesBack(t *testing.T) {
	k := key.FromSeed([32]byte{1, 2, 3})
	path := filepath.Join(t.TempDir(), "a", "key")
	if err := writeKey(path, k, nil); err != nil {
		t.Fatal(err)
	}
	got, err := loadKey(path, noPassphrase)
	if err != nil || got.Seed() != k.Seed() {
		t.Fatalf("got %v, %v", got.Public(), err)
	}
	if err := writeKey(path, key.FromSeed([32]byte{9}), nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("overwriting: got %v", err)
	}
}

func TestKeyFileWithPassphrase(t *testing.T) {
	k := key.FromSeed([32]byte{4})
	path := filepath.Join(t.TempDir(), "key")
	if err := writeKey(path, k, []byte("open sesame")); err != nil {
		t.Fatal(err)
	}
	if _, err := loadKey(path, noPassphrase); !errors.Is(err, errPassphrase) {
		t.Errorf("nobody to ask: got %v", err)
	}
	if _, err := loadKey(path, func(string) ([]byte, error) { return []byte("wrong"), nil }); err == nil {
		t.Error("a wrong passphrase was accepted")
	}
	got, err := loadKey(path, func(string) ([]byte, error) { return []byte("open sesame"), nil })
	if err != nil || got.Seed() != k.Seed() {
		t.Errorf("got %v", err)
	}
}

func TestKeyFilesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	k := key.FromSeed([32]byte{5})
	open := filepath.Join(dir, "open")
	if err := writeKey(open, k, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o640); err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(other, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want string }{
		{"others may read it", open, "chmod 600"},
		{"no key", writeFile(t, filepath.Join(dir, "text"), "hello"), "no key found"},
		{"another kind of key", writeFile(t, filepath.Join(dir, "ecdsa"), string(pem.EncodeToMemory(block))), "not an Ed25519 key"},
		{"too long", writeFile(t, filepath.Join(dir, "long"), strings.Repeat("x", keyFileBytesMax+1)), "not a key"},
		{"missing", filepath.Join(dir, "none"), "no such file"},
	} {
		if runtime.GOOS == "windows" && c.path == open {
			continue
		}
		if _, err := loadKey(c.path, noPassphrase); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

// OpenSSH reads our files, and we read OpenSSH's.
func TestKeyFilesAreThoseOfOpenSSH(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	dir := t.TempDir()
	theirs := filepath.Join(dir, "theirs")
	if out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "", "-f", theirs).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	k, err := loadKey(theirs, noPassphrase)
	if err != nil {
		t.Fatal(err)
	}
	ours := filepath.Join(dir, "ours")
	if err := writeKey(ours, k, nil); err != nil {
		t.Fatal(err)
	}
	var prints [2]string
	for i, path := range []string{theirs, ours} {
		out, err := exec.Command(keygen, "-l", "-f", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		prints[i] = strings.Fields(string(out))[1]
	}
	print, err := fingerprint(k.Public())
	if err != nil || prints[0] != prints[1] || prints[0] != print {
		t.Errorf("fingerprints: theirs %s, ours as ssh-keygen has it %s, ours %s, %v", prints[0], prints[1], print, err)
	}
}

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
	s.fails([]string{"key", "new", "--key", filepath.Join(t.TempDir(), "x"), "--passphrase"}, errPassphrase.Error())
}

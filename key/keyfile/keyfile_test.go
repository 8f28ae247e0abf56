package keyfile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
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

func noPassphrase(string) ([]byte, error) { return nil, ErrPassphrase }

func TestKeyFileComesBack(t *testing.T) {
	k := key.FromSeed([32]byte{1, 2, 3})
	path := filepath.Join(t.TempDir(), "a", "key")
	if err := Write(path, k, nil); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path, noPassphrase)
	if err != nil || got.Seed() != k.Seed() {
		t.Fatalf("got %v, %v", got.Public(), err)
	}
	if err := Write(path, key.FromSeed([32]byte{9}), nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("overwriting: got %v", err)
	}
}

func TestKeyFileWithPassphrase(t *testing.T) {
	k := key.FromSeed([32]byte{4})
	path := filepath.Join(t.TempDir(), "key")
	if err := Write(path, k, []byte("open sesame")); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, noPassphrase); !errors.Is(err, ErrPassphrase) {
		t.Errorf("nobody to ask: got %v", err)
	}
	if _, err := Load(path, func(string) ([]byte, error) { return []byte("wrong"), nil }); err == nil {
		t.Error("a wrong passphrase was accepted")
	}
	got, err := Load(path, func(string) ([]byte, error) { return []byte("open sesame"), nil })
	if err != nil || got.Seed() != k.Seed() {
		t.Errorf("got %v", err)
	}
}

func TestKeyFilesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	k := key.FromSeed([32]byte{5})
	open := filepath.Join(dir, "open")
	if err := Write(open, k, nil); err != nil {
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
		{"no key", writeText(t, filepath.Join(dir, "text"), "hello"), "move it away"},
		{"another kind of key", writeText(t, filepath.Join(dir, "ecdsa"), string(pem.EncodeToMemory(block))), "not an Ed25519 key"},
		{"too long", writeText(t, filepath.Join(dir, "long"), strings.Repeat("x", fileBytesMax+1)), "not a key"},
		{"missing", filepath.Join(dir, "none"), "no such file"},
	} {
		if runtime.GOOS == "windows" && c.path == open {
			continue
		}
		if _, err := Load(c.path, noPassphrase); err == nil || !strings.Contains(err.Error(), c.want) {
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
	k, err := Load(theirs, noPassphrase)
	if err != nil {
		t.Fatal(err)
	}
	ours := filepath.Join(dir, "ours")
	if err := Write(ours, k, nil); err != nil {
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
	print, err := Fingerprint(k.Public())
	if err != nil || prints[0] != prints[1] || prints[0] != print {
		t.Errorf("fingerprints: theirs %s, ours as ssh-keygen has it %s, ours %s, %v", prints[0], prints[1], print, err)
	}
}

// writeText writes a file that only its owner may read.
func writeText(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A key that could not be written was not made.
func TestAKeyThatIsNotWrittenIsNotMade(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	if err := os.Symlink(nowhere+"-else", nowhere); err != nil {
		t.Skip("this system makes no link to a directory that is missing: ", err)
	}
	if _, made, err := Ensure(filepath.Join(nowhere, "key"), false, noPassphrase); made || err == nil {
		t.Errorf("made: %v, %v", made, err)
	}
	if _, made, err := Ensure(filepath.Join(t.TempDir(), "key"), false, noPassphrase); !made || err != nil {
		t.Errorf("made: %v, %v", made, err)
	}
}

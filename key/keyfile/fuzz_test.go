package keyfile

import (
	"bytes"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/key"
)

// written returns the text of a key file.
func written(t testing.TB, passphrase string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := Write(path, key.FromSeed([32]byte{7}), []byte(passphrase)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A key file that says how much work its passphrase takes does not take all time.
func TestThePassphrasesWorkIsBounded(t *testing.T) {
	text := written(t, "secret")
	block, _ := pem.Decode(text)
	at := bytes.Index(block.Bytes, []byte("bcrypt")) + len("bcrypt") + 4 // the options: salt, rounds
	at += 4 + int(binary.BigEndian.Uint32(block.Bytes[at:]))
	phrase := func() ([]byte, error) { return []byte("secret"), nil }
	if n := binary.BigEndian.Uint32(block.Bytes[at:]); n != rounds(text) || n == 0 || n > roundsMax {
		t.Fatalf("%d rounds, read as %d", n, rounds(text))
	}
	if k, err := parse(text, phrase); err != nil || k.Public() != key.FromSeed([32]byte{7}).Public() {
		t.Fatalf("%v", err)
	}
	binary.BigEndian.PutUint32(block.Bytes[at:], 1<<31)
	if _, err := parse(pem.EncodeToMemory(block), phrase); err == nil || !strings.Contains(err.Error(), "2147483648 rounds") {
		t.Errorf("%v", err)
	}
}

// Whatever a key file holds, it is a key or an error, and only a bounded number of rounds asks for
// a passphrase.
func FuzzParse(f *testing.F) {
	f.Add(written(f, ""))
	f.Add(written(f, "secret"))
	f.Add([]byte("-----BEGIN OPENSSH PRIVATE KEY-----\n"))
	errAsked := errors.New("asked")
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := parse(text, func() ([]byte, error) {
			if n := rounds(text); n > roundsMax {
				t.Errorf("a passphrase of %d rounds is asked for", n)
			}
			return nil, errAsked
		})
		if (err == nil) == k.IsZero() {
			t.Errorf("a key %v and the error %v", !k.IsZero(), err)
		}
	})
}

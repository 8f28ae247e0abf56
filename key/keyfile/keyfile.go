// Package keyfile reads and writes key files: Ed25519 private keys in OpenSSH's format
// ("openssh-key-v1"), as ssh-keygen writes them, with or without a passphrase. Only their owner may
// read them.
package keyfile

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/crypto/ssh"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/key"
)

// fileBytesMax bounds a key file. OpenSSH's files of Ed25519 keys have about 400 bytes.
const fileBytesMax = 16 << 10

// ErrPassphrase reports that a key file is encrypted and there is no way to ask for its passphrase.
var ErrPassphrase = errors.New("the key is encrypted, and there is no terminal to ask for its passphrase")

// Load reads a key file. It calls passphrase if the key is encrypted. If there is no file the error
// wraps fs.ErrNotExist.
func Load(path string, passphrase func(prompt string) ([]byte, error)) (key.Private, error) {
	f, err := os.Open(path)
	if err != nil {
		return key.Private{}, fmt.Errorf("key file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return key.Private{}, fmt.Errorf("key file: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err != nil {
		return key.Private{}, fmt.Errorf("key file: %w", err)
	}
	if !bytes.Contains(text, []byte("PRIVATE KEY-----")) {
		return key.Private{}, fmt.Errorf("key file %q: it is not a key, or no whole one: restore it from your copy, or move it away and make another with: entrain key", path)
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return key.Private{}, fmt.Errorf("key file %q: others may read it (mode %04o); make it yours alone with: chmod 600 %q", path, mode, path)
	}
	if len(text) > fileBytesMax {
		return key.Private{}, fmt.Errorf("key file %q: more than %d bytes: not a key", path, fileBytesMax)
	}
	k, err := parse(text, func() ([]byte, error) { return passphrase(fmt.Sprintf("Passphrase of %s: ", path)) })
	if err != nil {
		return key.Private{}, fmt.Errorf("key file %q: %w", path, err)
	}
	return k, nil
}

// parse reads the text of a key file.
func parse(text []byte, passphrase func() ([]byte, error)) (key.Private, error) {
	raw, err := ssh.ParseRawPrivateKey(text)
	var missing *ssh.PassphraseMissingError
	if errors.As(err, &missing) {
		if n := rounds(text); n > roundsMax {
			return key.Private{}, fmt.Errorf("its passphrase is hashed in %d rounds, at most %d are taken: encrypt it again with: ssh-keygen -p -a 100", n, roundsMax)
		}
		var phrase []byte
		if phrase, err = passphrase(); err == nil {
			raw, err = ssh.ParseRawPrivateKeyWithPassphrase(text, phrase)
		}
	}
	if err != nil {
		return key.Private{}, err
	}
	private, ok := raw.(*ed25519.PrivateKey)
	if !ok {
		return key.Private{}, fmt.Errorf("holds a %T, not an Ed25519 key; make one with: entrain key", raw)
	}
	return key.FromSeed([ed25519.SeedSize]byte(private.Seed())), nil
}

// roundsMax bounds the work of one passphrase: a round takes some milliseconds, and ssh-keygen
// makes 24.
const roundsMax = 1024

// rounds returns how many rounds of bcrypt the passphrase of an OpenSSH key takes, 0 if the text
// does not say.
func rounds(text []byte) (n uint32) {
	block, _ := pem.Decode(text)
	if block == nil {
		return 0
	}
	var head struct {
		Cipher, KDF, Options string
		Rest                 []byte `ssh:"rest"`
	}
	var options struct {
		Salt   string
		Rounds uint32
	}
	body, ok := bytes.CutPrefix(block.Bytes, []byte("openssh-key-v1\x00"))
	if !ok || ssh.Unmarshal(body, &head) != nil || ssh.Unmarshal([]byte(head.Options), &options) != nil {
		return 0
	}
	return options.Rounds
}

// Write writes a new key file and its directories. It never overwrites a file: the error then wraps
// fs.ErrExist. An empty passphrase means no encryption.
func Write(path string, k key.Private, passphrase []byte) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("key file %q: %w: it may hold a key in use; choose another file, or move it away", path, fs.ErrExist)
	}
	seed := k.Seed()
	private := ed25519.NewKeyFromSeed(seed[:])
	const comment = "entrain"
	var block *pem.Block
	var err error
	if len(passphrase) > 0 {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, comment, passphrase)
	} else {
		block, err = ssh.MarshalPrivateKey(private, comment)
	}
	if err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	return atomicfile.WriteBytes(path, 0o600, pem.EncodeToMemory(block))
}

// Ensure is Load, and makes a key and its file if there is no file. With encrypt the key must be
// new, and its file gets a passphrase, which ask is asked for twice.
func Ensure(path string, encrypt bool, ask func(prompt string) ([]byte, error)) (k key.Private, made bool, err error) {
	if k, err = Load(path, ask); err == nil && encrypt {
		err = fmt.Errorf("--passphrase: the key %q already exists", path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return k, false, err
	}
	var phrase []byte
	if encrypt {
		if phrase, err = askTwice(ask); err != nil {
			return k, false, err
		}
	}
	if k, err = New(rand.Reader); err != nil {
		return k, false, err
	}
	err = Write(path, k, phrase)
	return k, err == nil, err
}

// askTwice asks for a new passphrase.
func askTwice(ask func(prompt string) ([]byte, error)) ([]byte, error) {
	first, err := ask("New passphrase: ")
	if err != nil {
		return nil, fmt.Errorf("key with a passphrase: %w", err)
	}
	second, err := ask("The same again: ")
	switch {
	case err != nil:
		return nil, fmt.Errorf("key with a passphrase: %w", err)
	case len(first) == 0:
		return nil, errors.New("the passphrase is empty; leave out --passphrase for a key without one")
	case !bytes.Equal(first, second):
		return nil, errors.New("the two passphrases differ; nothing was written")
	}
	return first, nil
}

// New makes a key from a source of randomness.
func New(random io.Reader) (key.Private, error) {
	var seed [32]byte
	if _, err := io.ReadFull(random, seed[:]); err != nil {
		return key.Private{}, fmt.Errorf("new key: %w", err)
	}
	return key.FromSeed(seed), nil
}

// Fingerprint returns the key's fingerprint as OpenSSH shows it.
func Fingerprint(p key.Public) (string, error) {
	k, err := ssh.NewPublicKey(ed25519.PublicKey(bytes.Clone(p[:])))
	if err != nil {
		return "", err
	}
	return ssh.FingerprintSHA256(k), nil
}

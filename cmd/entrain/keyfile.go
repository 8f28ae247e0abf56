package main

import (
	"bytes"
	"crypto/ed25519"
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

// A key file is an Ed25519 private key in OpenSSH's format ("openssh-key-v1"), as ssh-keygen writes it, with a passphrase or without.
// Only its owner may read it.

// keyFileBytesMax bounds what is read: OpenSSH's files of Ed25519 keys have some 400 bytes.
const keyFileBytesMax = 16 << 10

// errPassphrase says that a key file is encrypted and nobody was there to be asked for the passphrase.
var errPassphrase = errors.New("the key is encrypted, and there is no terminal to ask for its passphrase")

// loadKey reads a key file. Passphrase is asked when the key is encrypted. A missing file gives an error that wraps fs.ErrNotExist.
func loadKey(path string, passphrase func(prompt string) ([]byte, error)) (key.Private, error) {
	f, err := os.Open(path)
	if err != nil {
		return key.Private{}, fmt.Errorf("key file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return key.Private{}, fmt.Errorf("key file: %w", err)
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return key.Private{}, fmt.Errorf("key file %q: others may read it (mode %04o); make it yours alone with: chmod 600 %q", path, mode, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, keyFileBytesMax+1))
	if err != nil {
		return key.Private{}, fmt.Errorf("key file: %w", err)
	}
	if len(text) > keyFileBytesMax {
		return key.Private{}, fmt.Errorf("key file %q: more than %d bytes: not a key", path, keyFileBytesMax)
	}
	raw, err := ssh.ParseRawPrivateKey(text)
	var missing *ssh.PassphraseMissingError
	if errors.As(err, &missing) {
		var phrase []byte
		if phrase, err = passphrase(fmt.Sprintf("Passphrase of %s: ", path)); err == nil {
			raw, err = ssh.ParseRawPrivateKeyWithPassphrase(text, phrase)
		}
	}
	if err != nil {
		return key.Private{}, fmt.Errorf("key file %q: %w", path, err)
	}
	private, ok := raw.(*ed25519.PrivateKey)
	if !ok {
		return key.Private{}, fmt.Errorf("key file %q: holds a %T, not an Ed25519 key; make one with: entrain key new", path, raw)
	}
	return key.FromSeed([ed25519.SeedSize]byte(private.Seed())), nil
}

// writeKey writes a new key file, with directories. An existing file is never overwritten: the error wraps fs.ErrExist. An empty
// passphrase encrypts nothing.
func writeKey(path string, k key.Private, passphrase []byte) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("key file %q: %w: it may be somebody's identity; choose another file, or move it away", path, fs.ErrExist)
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

// newKey makes a key from a source of randomness.
func newKey(random io.Reader) (key.Private, error) {
	var seed [32]byte
	if _, err := io.ReadFull(random, seed[:]); err != nil {
		return key.Private{}, fmt.Errorf("new key: %w", err)
	}
	return key.FromSeed(seed), nil
}

// fingerprint is how OpenSSH shows the key, so that both tools can be compared.
func fingerprint(p key.Public) (string, error) {
	k, err := ssh.NewPublicKey(ed25519.PublicKey(bytes.Clone(p[:])))
	if err != nil {
		return "", err
	}
	return ssh.FingerprintSHA256(k), nil
}

package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/key/keyfile"
)

func keyCommand(c console) *cobra.Command {
	return group("key", "Create and show your key",
		`An Ed25519 key identifies you on the chain, among peers and on the leaderboard. Its file has
OpenSSH's format and is looked for, in this order, at --key FILE, at $ENTRAIN_KEY_FILE, and in your
configuration directory.`,
		keyNewCommand(c), keyShowCommand(c), keyDelegateCommand(c))
}

// keyFlag adds --key.
func keyFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "key", "", "`file` of the key (default $ENTRAIN_KEY_FILE, then the user's configuration directory)")
	_ = cmd.MarkFlagFilename("key")
}

// keyPath is where the key lies, by the flag, the environment, or by default.
func (c console) keyPath(flag string) (string, error) {
	switch {
	case flag != "":
		return flag, nil
	case c.env("ENTRAIN_KEY_FILE") != "":
		return c.env("ENTRAIN_KEY_FILE"), nil
	case c.places.Config == "":
		return "", errors.New("this system names no configuration directory; say where the key is with --key FILE")
	}
	return filepath.Join(c.places.Config, "id_ed25519"), nil
}

// loadKey reads the key at path, asking for its passphrase on the terminal if it has one.
func (c console) loadKey(path string) (key.Private, error) {
	k, err := keyfile.Load(path, c.passphrase)
	if errors.Is(err, fs.ErrNotExist) {
		return k, fmt.Errorf("%w; make a key with: entrain key new --key %q", err, path)
	}
	return k, err
}

// publicKey is the public key of the user's key file.
func (c console) publicKey(file string) (key.Public, error) {
	path, err := c.keyPath(file)
	if err != nil {
		return key.Public{}, err
	}
	k, err := c.loadKey(path)
	if err != nil {
		return key.Public{}, err
	}
	return k.Public(), nil
}

// ensureKey is loadKey, and makes a key without passphrase if there is no file.
func (c console) ensureKey(path string) (k key.Private, made bool, err error) {
	k, err = keyfile.Load(path, c.passphrase)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, false, err
	}
	if k, err = keyfile.New(rand.Reader); err != nil {
		return k, false, err
	}
	return k, true, keyfile.Write(path, k, nil)
}

// ownKey returns the user's key, from the given file or the default one, and prints a note if it
// creates the key.
func (c console) ownKey(file string) (k key.Private, path string, err error) {
	if path, err = c.keyPath(file); err != nil {
		return k, "", err
	}
	k, made, err := c.ensureKey(path)
	if made {
		c.say("made a key in %s: %s", path, k.Public())
	}
	return k, path, err
}

// passphrase asks on the terminal, without showing what is typed.
func (c console) passphrase(prompt string) ([]byte, error) {
	f, ok := c.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, keyfile.ErrPassphrase
	}
	fmt.Fprint(c.err, prompt)
	phrase, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(c.err)
	return phrase, err
}

func keyNewCommand(c console) *cobra.Command {
	var file string
	var encrypt bool
	cmd := &cobra.Command{
		Use:     "new",
		Short:   "Create a key",
		Long:    "Makes a key and writes its file, which only you can read. A file that exists is never overwritten.",
		Example: "  entrain key new\n  entrain key new --key ./alice.key --passphrase",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path, err := c.keyPath(file)
			if err != nil {
				return err
			}
			var phrase []byte
			if encrypt {
				if phrase, err = c.newPassphrase(); err != nil {
					return err
				}
			}
			k, err := keyfile.New(rand.Reader)
			if err != nil {
				return err
			}
			if err := keyfile.Write(path, k, phrase); err != nil {
				return err
			}
			c.say("wrote %s; keep a copy in a safe place: who has it is you, and nobody can restore it", path)
			return c.showKey(path, k.Public(), false)
		},
	}
	keyFlag(cmd, &file)
	cmd.Flags().BoolVar(&encrypt, "passphrase", false, "encrypt the file with a passphrase, asked for on the terminal")
	return cmd
}

func (c console) newPassphrase() ([]byte, error) {
	first, err := c.passphrase("New passphrase: ")
	if err != nil {
		return nil, fmt.Errorf("key with a passphrase: %w", err)
	}
	second, err := c.passphrase("The same again: ")
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

func keyShowCommand(c console) *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "Show the public key",
		Long:    "Shows the public key, which is safe to give to anyone. The secret is never shown.",
		Example: "  entrain key show\n  entrain key show --json | jq -r .public",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path, err := c.keyPath(file)
			if err != nil {
				return err
			}
			k, err := c.loadKey(path)
			if err != nil {
				return err
			}
			return c.showKey(path, k.Public(), asJSON)
		},
	}
	keyFlag(cmd, &file)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (c console) showKey(path string, p key.Public, asJSON bool) error {
	print, err := keyfile.Fingerprint(p)
	if err != nil {
		return err
	}
	if asJSON {
		return c.object(struct {
			Public      key.Public `json:"public"`
			Fingerprint string     `json:"fingerprint"`
			File        string     `json:"file"`
		}{p, print, path})
	}
	_, err = fmt.Fprintf(c.out, "%s\n", p)
	c.say("fingerprint %s", print)
	return err
}

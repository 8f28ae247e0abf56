package main

import (
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
	var a acting
	var name, team string
	var encrypt, list, asJSON bool
	cmd := group("key", "Show your key or name it, and create it if there is none",
		`An Ed25519 key identifies you on the chain, among peers and on the leaderboard. Its file has
OpenSSH's format and is looked for, in this order, at --key FILE, at $ENTRAIN_KEY_FILE, and in your
configuration directory.

Without a command, shows the public key, which is safe to give to anyone; the secret is never shown.
If there is no file, creates a key and its file, which only you can read. A file that exists is never
overwritten.

--name gives your key a name on the chain, and a team if you name one, in place of those that it has. Pages,
windows and reports show them beside your key, with a picture drawn from both. An empty name, "", takes
both away. Names and teams have 2 to 24 of a-z, 0-9 and inner '-'. Each is unique on the chain, and so is
what it looks like: alice, a1ice and al-ice are one. Anyone may join a team. Your key needs a part in a run
or tokens: join first. When it has neither any more, the name is free again. A name is no proof of who
somebody is: compare keys.`,
		keyDelegateCommand(c))
	cmd.Example = "  entrain key\n  entrain key --json | jq -r .public\n  entrain key --key ./alice.key --passphrase\n" +
		"  entrain key --name alice --team night-owls\n  entrain key --names"
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case list:
			return c.listNames(cmd.Context(), a.chain, asJSON)
		case cmd.Flags().Changed("name") || team != "":
			return c.nameKey(cmd.Context(), a, name, team)
		}
		path, err := c.keyPath(a.keyFile)
		if err != nil {
			return err
		}
		k, made, err := keyfile.Ensure(path, encrypt, c.passphrase)
		if err != nil {
			return err
		}
		if made {
			c.say("wrote %s; keep a copy in a safe place: who has it is you, and nobody can restore it", path)
		}
		return c.showKey(path, k.Public(), asJSON)
	}
	a.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "`name` that pages show for your key; \"\" takes it away")
	f.StringVar(&team, "team", "", "`team` that pages show for your key, besides a name")
	f.BoolVar(&list, "names", false, "list the names of keys on the chain")
	f.BoolVar(&encrypt, "passphrase", false, "encrypt the file of a new key with a passphrase, asked for on the terminal")
	jsonFlag(cmd, &asJSON)
	return cmd
}

const keyUsage = "`file` of the key (default $ENTRAIN_KEY_FILE, then the user's configuration directory)"

// keyFlag adds --key.
func keyFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "key", "", keyUsage)
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

// loadKey reads the user's key, from the given file or the default one, asking for its passphrase
// on the terminal if it has one.
func (c console) loadKey(file string) (k key.Private, err error) {
	path, err := c.keyPath(file)
	if err != nil {
		return k, err
	}
	if k, err = keyfile.Load(path, c.passphrase); errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; make a key with: entrain key --key %q", err, path)
	}
	return k, err
}

// ownKey returns the user's key, from the given file or the default one, and prints a note if it
// creates the key.
func (c console) ownKey(file string) (k key.Private, path string, err error) {
	if path, err = c.keyPath(file); err != nil {
		return k, "", err
	}
	k, made, err := keyfile.Ensure(path, false, c.passphrase)
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

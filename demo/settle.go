package demo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/participant"
)

// Settle completes settings and checks them. Those that given, by the name of the flag, reports are
// the user's; the others become those of the demo that the directory keeps, or else the defaults of
// the exchange and the adversary. The user's must agree with those kept. Settle reports whether the
// directory keeps a demo.
func (s *Settings) Settle(dir string, given func(flag string) bool) (kept bool, err error) {
	of := Default(s.Exchange, s.Adversary)
	if dir != "" {
		was, found, err := Kept(dir)
		if err != nil {
			return false, err
		}
		if kept = found; kept {
			of = was
		}
	}
	for _, f := range []struct {
		flag    string
		is, was any
		keep    func()
	}{
		{"exchange", s.Exchange, of.Exchange, func() { s.Exchange = of.Exchange }},
		{"adversary", s.Adversary, of.Adversary, func() { s.Adversary = of.Adversary }},
		{"clients", s.Clients, of.Clients, func() { s.Clients = of.Clients }},
		{"rounds", s.Rounds, of.Rounds, func() { s.Rounds = of.Rounds }},
		{"text", s.Text, of.Text, func() { s.Text = of.Text }},
		{"preset", s.Preset, of.Preset, func() { s.Preset = of.Preset }},
		{"verification", s.Verification, of.Verification, func() { s.Verification = of.Verification }},
		{"validators", s.Validators, of.Validators, func() { s.Validators = of.Validators }},
		{"window", s.Window, of.Window, func() { s.Window = of.Window }},
	} {
		if !given(f.flag) {
			f.keep()
		} else if kept && f.is != f.was {
			return kept, fmt.Errorf("--%s differs from that of the run kept in %q, %v; leave it out to continue that run, or choose another directory", f.flag, dir, f.was)
		}
	}
	if kept {
		return true, nil
	}
	if s.Exchange == Peers {
		for _, flag := range []string{"validators", "window"} {
			if given(flag) {
				return false, fmt.Errorf("--%s: only with --exchange %s", flag, Buckets)
			}
		}
	}
	if err := s.Check(); err != nil {
		return false, fmt.Errorf("--%w", err)
	}
	return false, nil
}

// Bucket reads the location of a bucket for all clients, or a file with one, and tests the bucket.
// A location without a prefix gets a random one.
func Bucket(ctx context.Context, value string) (bucket.Location, error) {
	at, err := participant.Location("s3", value)
	if err != nil {
		return at, err
	}
	if at.Prefix == "" {
		var name [4]byte
		_, _ = rand.Read(name[:]) // never fails
		at = at.Under("entrain-demo-" + hex.EncodeToString(name[:]))
	}
	client := bucket.NewClient(bucket.S3Options{})
	defer client.Close()
	if err := (participant.Mining{Shared: true}).Probe(ctx, client, at, at, "demo"); err != nil {
		return at, fmt.Errorf("--s3: %w", err)
	}
	return at, nil
}

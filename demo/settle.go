package demo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"reflect"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/participant"
)

// Settle completes settings and checks them. Those that given, by the name of the flag, reports are
// the user's; the others become those of the demo that the directory keeps, or else the defaults of
// the exchange and the adversary. The user's must agree with those kept. Settle reports whether the
// directory keeps a demo.
func (s *Settings) Settle(dir string, given func(flag string) bool) (kept bool, err error) {
	of := Default(s.Chain, s.Exchange, s.Adversary)
	if dir != "" {
		was, found, err := Kept(dir)
		if err != nil {
			return false, err
		}
		if kept = found; kept {
			of = was
		}
	}
	is, was := reflect.ValueOf(s).Elem(), reflect.ValueOf(of)
	for i := range is.NumField() {
		flag := is.Type().Field(i).Tag.Get("flag")
		if !given(flag) {
			is.Field(i).Set(was.Field(i))
		} else if kept && !is.Field(i).Equal(was.Field(i)) {
			return kept, fmt.Errorf("--%s differs from that of the run kept in %q, %v; leave it out to continue that run, or choose another directory", flag, dir, was.Field(i))
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
	at, err := participant.Location("exchange", value)
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
		return at, fmt.Errorf("--exchange: %w", err)
	}
	return at, nil
}

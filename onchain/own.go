package onchain

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/ledger/comet"
)

// DefaultChain is where a replica serves clients unless told otherwise.
const DefaultChain = "http://" + comet.DefaultAPI

// ownFile, in the directory that remembers chains, holds the endpoint of the replica that this user
// started last, with its genesis.
const (
	ownFile     = "own"
	ownBytesMax = 1 << 10
)

// Endpoints are the replicas to talk to: those that flags name, or a variable of the environment,
// or by default the replica that this user started last, and no other that took its port. Dir is as
// in DialOptions.Remember.
func Endpoints(flags []string, variable, dir string) []string {
	switch {
	case len(flags) > 0:
		return flags
	case variable != "":
		return strings.Fields(strings.ReplaceAll(variable, ",", " "))
	}
	if dir != "" {
		b, err := atomicfile.ReadBounded(filepath.Join(dir, ownFile), ownBytesMax)
		if own, wrong := URL(strings.TrimSpace(string(b))); err == nil && wrong == nil {
			return []string{own}
		}
	}
	return []string{DefaultChain}
}

// Own makes the replica in home the one that Endpoints returns by default.
func Own(home, dir string) error {
	endpoint, err := comet.OwnEndpoint(home)
	if err != nil || dir == "" || strings.Contains(endpoint, ":0#") {
		return nil // comet.Open says what is wrong; nobody expects a replica at a random port
	}
	if err = os.MkdirAll(dir, 0o700); err == nil {
		err = atomicfile.WriteBytes(filepath.Join(dir, ownFile), 0o644, []byte(endpoint+"\n"))
	}
	if err != nil {
		return fmt.Errorf("without --chain, commands will not know this chain: %w", err)
	}
	return nil
}

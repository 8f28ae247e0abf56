package comet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/entrain-network/entrain/host"
)

// A genesis that is taken is one that a host starts from, and names its replicas as the engine
// does.
func FuzzParseGenesis(f *testing.F) {
	f.Add([]byte(`{`))
	f.Add([]byte(`{"chain_id":"a","app_state":{}}`))
	f.Add([]byte(`{"genesis_time":"2026-01-01T00:00:00Z","chain_id":"a","app_state":{"chain":"a"},"validators":[]}`))
	dir := filepath.Join(f.TempDir(), "home")
	if err := Init(dir, Options{Chain: testChain}); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, genesisFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, b []byte) {
		doc, g, err := parseGenesis(b)
		if err != nil {
			return
		}
		if doc.ChainID != g.Chain || len(doc.Validators) != len(g.Replicas) || len(g.Replicas) == 0 {
			t.Errorf("chain %q of %d validators, ledger %q of %d replicas", doc.ChainID, len(doc.Validators), g.Chain, len(g.Replicas))
		}
		if _, err := host.NewHost(g, rules(nil)); err != nil {
			t.Errorf("no host starts from it: %v", err)
		}
	})
}

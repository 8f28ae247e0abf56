package solana

import (
	"encoding/json"
	"testing"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/coordinator"
)

// FuzzAnswer reads what an endpoint may say of a run's account, as the client does.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"context":{"slot":7},"value":[{"lamports":1,"owner":"11111111111111111111111111111111","data":["RU5UUg==","base64"]},null]}`))
	f.Add([]byte(`{"value":[{"data":["","base58"]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var list []*account
		if json.Unmarshal(text, &struct{ Value *[]*account }{&list}) != nil {
			return
		}
		for _, a := range list {
			if a == nil {
				continue
			}
			if len(a.Data) > len(text) {
				t.Fatalf("%d bytes of data from %d", len(a.Data), len(text))
			}
			if s, err := coordinator.Open(solana.State(a.Data)); err == nil && len(s.Bytes()) > len(a.Data) {
				t.Fatalf("a state of %d bytes from %d", len(s.Bytes()), len(a.Data))
			}
			if addrs, err := readAddrs(a.Data); err == nil && len(addrs) > len(a.Data) {
				t.Fatalf("%d addresses from %d bytes", len(addrs), len(a.Data))
			}
		}
	})
}

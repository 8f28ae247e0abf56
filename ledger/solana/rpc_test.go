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
			if ms, err := clockOf(a); err == nil && ms%1000 != 0 {
				t.Fatalf("a clock of %d ms", ms)
			}
			solana.Named(a.Data)
			if addrs, err := readAddrs(a.Data); err == nil && len(addrs) > len(a.Data) {
				t.Fatalf("%d addresses from %d bytes", len(addrs), len(a.Data))
			}
		}
	})
}

// FuzzRefusal reads why an endpoint says that a transaction failed.
func FuzzRefusal(f *testing.F) {
	f.Add([]byte(`{"InstructionError":[2,{"Custom":1012}]}`))
	f.Add([]byte(`{"InstructionError":[0,{"Custom":1}]}`))
	f.Add([]byte(`"AccountNotFound"`))
	f.Add([]byte(`{"InsufficientFundsForRent":{"account_index":0}}`))
	f.Add([]byte(`null`))
	list := []solana.Instruction{{}, {Program: solana.TokenProgram}, {Program: solana.Address{7}}}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := refusal(solana.Program{7}, text, list)
		if (err == nil) != (len(text) == 0 || string(text) == "null") {
			t.Fatalf("%q: %v", text, err)
		}
		if err != nil && len(err.Error()) > len(text)+512 {
			t.Fatalf("%d bytes of words about %d", len(err.Error()), len(text))
		}
	})
}

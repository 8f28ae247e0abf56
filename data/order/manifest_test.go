package order_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/data/order"
	"github.com/entrain-network/entrain/wire"
	"pgregory.net/rapid"
)

// TestManifestsAreReadWithoutJSON compares what is read line by line with what package data reads.
func TestManifestsAreReadWithoutJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := data.Manifest{
			Version: data.Version, Name: "set", Tokenizer: data.Tokenizer{Name: "bytes", Hash: wire.Sum("test")}, Vocab: rapid.Uint32Range(1, 30000).Draw(t, "vocab"),
			TokenBytes: rapid.SampledFrom([]int{2, 4}).Draw(t, "bytes"), ShardTokens: data.ShardTokensMin, Masked: rapid.Bool().Draw(t, "masked"),
			Chat: rapid.SampledFrom([]string{"", "a\n  \"tokens\": 3\n", `{"tokens": 4}`, "\n  \"shards\": [\n"}).Draw(t, "chat"),
		}
		want := order.Text{Vocab: m.Vocab, TokenBytes: m.TokenBytes, ShardTokens: m.ShardTokens, Masked: m.Masked}
		for i := range rapid.IntRange(0, 5).Draw(t, "shards") {
			s := data.Shard{File: fmt.Sprint("shard", i), Tokens: m.ShardTokens, Bytes: m.ShardTokens * uint64(m.TokenBytes), Root: wire.Sum("test", []byte{byte(i)})}
			m.Shards, m.Tokens = append(m.Shards, s), m.Tokens+s.Tokens
			want.Shards = append(want.Shards, order.Shard{Bytes: s.Bytes, Root: s.Root})
			held := s
			held.File = "held" + s.File
			m.HeldOut, m.HeldOutTokens = append(m.HeldOut, held), m.HeldOutTokens+s.Tokens
		}
		want.Tokens = m.Tokens
		if _, err := data.ParseManifest(m.Bytes()); err != nil {
			t.Fatal(err)
		}
		if got, mix := order.Read(m.Bytes()); !reflect.DeepEqual(got, want) || mix != nil {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

func TestMixesAreReadWithoutJSON(t *testing.T) {
	m := data.Mix{Version: data.Version, Name: "both", Components: []data.Component{
		{Set: "web", Weight: 3, Manifest: wire.Sum("web")}, {Set: "code", Weight: 1, Manifest: wire.Sum("code")}}}
	if _, err := data.ParseMix(m.Bytes()); err != nil {
		t.Fatal(err)
	}
	want := order.Mix{{Weight: 3, Manifest: wire.Sum("web")}, {Weight: 1, Manifest: wire.Sum("code")}}
	if _, mix := order.Read(m.Bytes()); !reflect.DeepEqual(mix, want) {
		t.Errorf("%+v, want %+v", mix, want)
	}
}

package wide

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestParts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := Uint{Hi: rapid.Uint64().Draw(rt, "hi"), Lo: rapid.Uint64().Draw(rt, "lo")}
		b := rapid.Uint64Range(1, 1<<63-1).Draw(rt, "whole")
		a := rapid.Uint64Range(0, b).Draw(rt, "part")
		got := w.Part(a, b)
		want := new(big.Int).SetUint64(w.Hi)
		want.Lsh(want, 64).Add(want, new(big.Int).SetUint64(w.Lo))
		want.Mul(want, new(big.Int).SetUint64(a)).Div(want, new(big.Int).SetUint64(b))
		have := new(big.Int).SetUint64(got.Hi)
		if have.Lsh(have, 64).Add(have, new(big.Int).SetUint64(got.Lo)); have.Cmp(want) != 0 {
			rt.Fatalf("%+v × %d / %d: got %v, want %v", w, a, b, have, want)
		}
		if w.Minus(w.Part(a, b)).Plus(0).Less(Uint{}) || w.Less(got) {
			rt.Fatal("a part is more than the whole")
		}
	})
}

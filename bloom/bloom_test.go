package bloom

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/wire"
	"pgregory.net/rapid"
)

// item returns the n-th of as many unrelated items as are needed.
func item(n uint64) wire.Hash {
	return wire.Sum("test/item", binary.LittleEndian.AppendUint64(nil, n))
}

// quorum is the rule of package committee, which is a layer below.
func quorum(witnesses uint32) uint32 { return witnesses*2/3 + 1 }

// The vectors are printed by testdata/vectors.py, another implementation.
func TestVectors(t *testing.T) {
	salt := slices.Repeat([]byte{1}, 32)
	var counting wire.Hash
	for i := range counting {
		counting[i] = byte(i)
	}
	p := newProbe(salt, counting)
	var got []uint32
	for range 20 {
		got = append(got, p.next(1024))
	}
	want := []uint32{224, 559, 328, 207, 756, 887, 461, 651, 482, 1002, 278, 441, 366, 73, 130, 877, 919, 391, 123, 9}
	if !slices.Equal(got, want) {
		t.Errorf("the bits are %d, want %d", got, want)
	}
	params := Params{Bits: 128, Hashes: 10}
	f := New(params)
	for i := range byte(3) {
		f.Add(params, []byte("ann"), wire.SHA256([]byte{i}))
	}
	if got, want := hex.EncodeToString(f), "d445410a2600140c2402000184202802"; got != want {
		t.Errorf("the filter is %s, want %s", got, want)
	}
}

func TestFilterHasWhatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		witnesses := rapid.Uint32Range(1, WitnessesMax).Draw(t, "witnesses")
		n := rapid.Uint32Range(0, 300).Draw(t, "items")
		p := Size(n, witnesses, quorum(witnesses))
		salt := rapid.SliceOfN(rapid.Byte(), 0, SaltBytesMax).Draw(t, "salt")
		first := rapid.Uint64().Draw(t, "first")
		f := New(p)
		for i := range uint64(n) {
			f.Add(p, salt, item(first+i))
		}
		for i := range uint64(n) {
			if !f.Has(p, salt, item(first+i)) {
				t.Fatalf("item %d of %d is denied", i, n)
			}
		}
		if !f.Plausible(p, n) {
			t.Errorf("an honest filter of %d items with %d of %d bits set is refused", n, f.Ones(), p.Bits)
		}
	})
}

// wrongIsRare reports whether items * C(among, needed) * p^needed < 2^-40, exactly. A plausible filter has at most half its bits
// set, and each of an item's bits meets one with probability at most (1 + Bits/2^32) / 2, so p is that to the power of Hashes.
func wrongIsRare(p Params, items, among, needed uint32) bool {
	draws := uint64(needed) * uint64(p.Hashes)
	x := new(big.Int).Exp(new(big.Int).SetUint64(1<<32+uint64(p.Bits)), new(big.Int).SetUint64(draws), nil)
	x.Mul(x, new(big.Int).Binomial(int64(among), int64(needed)))
	x.Mul(x, big.NewInt(int64(max(items, 1))))
	return new(big.Int).Lsh(x, securityBits).Cmp(new(big.Int).Lsh(big.NewInt(1), uint(33*draws))) < 0
}

// TestWrongAcceptanceIsBelowTheBound computes both bounds of Size's comment: with as many liars as a quorum tolerates, and
// with none.
func TestWrongAcceptanceIsBelowTheBound(t *testing.T) {
	for _, items := range []uint32{0, 1, 2, 3, 20, 255, 256, 257, 1000, 9999, 10_000, ItemsMax} {
		for witnesses := uint32(1); witnesses <= WitnessesMax; witnesses++ {
			for q := witnesses/2 + 1; q <= witnesses; q++ {
				p := Size(items, witnesses, q)
				if p.Bits%64 != 0 || p.Bits > BitsMax || uint64(p.Bits) < 2*uint64(items)*uint64(p.Hashes) {
					t.Fatalf("Size(%d, %d, %d) = %+v", items, witnesses, q, p)
				}
				liars := witnesses - q
				if !wrongIsRare(p, items, witnesses-liars, q-liars) {
					t.Errorf("%d items, %d witnesses, quorum %d: %+v is not enough against %d liars", items, witnesses, q, p, liars)
				}
				if !wrongIsRare(p, items, witnesses, q) {
					t.Errorf("%d items, %d witnesses, quorum %d: %+v is not enough", items, witnesses, q, p)
				}
			}
		}
	}
	if weak := (Params{Bits: 3072, Hashes: 5}); wrongIsRare(weak, 256, 22, 12) {
		t.Errorf("%+v, one bit less than Size says, is enough", weak)
	}
}

func TestSizeIsNotWasteful(t *testing.T) {
	for _, c := range []struct {
		items, witnesses uint32
		want             Params
	}{
		{4, 1, Params{Bits: 384, Hashes: 45}},
		{256, 1, Params{Bits: 26_112, Hashes: 51}},
		{256, 4, Params{Bits: 13_312, Hashes: 26}},
		{256, 32, Params{Bits: 3072, Hashes: 6}},
		{10_000, 32, Params{Bits: 140_032, Hashes: 7}},
	} {
		if got := Size(c.items, c.witnesses, quorum(c.witnesses)); got != c.want {
			t.Errorf("Size(%d, %d, %d) = %+v, want %+v", c.items, c.witnesses, quorum(c.witnesses), got, c.want)
		}
	}
}

// TestMeasuredFalsePositives holds the filters of a full committee against what their fill says, alone and together: the
// bound rests on (ones/Bits)^Hashes, and on witnesses' errors being independent.
func TestMeasuredFalsePositives(t *testing.T) {
	const items, asked = 256, 40_000
	const first, second = 8, 24 // the two witnesses compared
	p := Params{Bits: 64 * 24, Hashes: 3}
	var filters [WitnessesMax]Filter
	salts := make([][]byte, WitnessesMax)
	for w := range filters {
		h := wire.Sum("test/witness", []byte{byte(w)})
		salts[w] = h[:]
		filters[w] = New(p)
		for i := range uint64(items) {
			filters[w].Add(p, salts[w], item(i))
		}
		if !filters[w].Plausible(p, items) {
			t.Fatalf("filter %d with %d of %d bits set is not plausible", w, filters[w].Ones(), p.Bits)
		}
	}
	rate := func(w int) float64 { return math.Pow(float64(filters[w].Ones())/float64(p.Bits), float64(p.Hashes)) }
	near := func(what string, got int, p float64) {
		mean, deviation := asked*p, math.Sqrt(asked*p*(1-p))
		if math.Abs(float64(got)-mean) > 5*deviation {
			t.Errorf("%s: %d of %d items are wrongly confirmed, %.0f expected, deviation %.0f", what, got, asked, mean, deviation)
		}
	}
	var alone [WitnessesMax]int
	together := 0
	for i := range uint64(asked) {
		wrong := item(items + i)
		for _, w := range []int{first, second} {
			if filters[w].Has(p, salts[w], wrong) {
				alone[w]++
			}
		}
		if filters[first].Has(p, salts[first], wrong) && filters[second].Has(p, salts[second], wrong) {
			together++
		}
	}
	near("one witness", alone[first], rate(first))
	near("another witness", alone[second], rate(second))
	near("both", together, rate(first)*rate(second))
}

// With filters of the size a round uses, nothing that was not added reaches a quorum.
func TestNoWrongItemReachesAQuorum(t *testing.T) {
	const items, witnesses = 256, 32
	p := Size(items, witnesses, quorum(witnesses))
	votes := make([]uint32, 5000)
	for w := range byte(witnesses) {
		f := New(p)
		for i := range uint64(items) {
			f.Add(p, []byte{w}, item(i))
		}
		for i := range votes {
			if f.Has(p, []byte{w}, item(items+uint64(i))) {
				votes[i]++
			}
		}
	}
	if most := slices.Max(votes); most >= quorum(witnesses)/2 {
		t.Errorf("an item that nobody holds is confirmed by %d of %d witnesses", most, witnesses)
	}
}

func TestImplausibleFiltersAreRefused(t *testing.T) {
	const items = 100
	p := Size(items, 8, quorum(8))
	full := func(ones uint32) Filter {
		f := New(p)
		for b := range ones {
			f[b/8] |= 1 << (b % 8)
		}
		return f
	}
	bitsOfItems := items * uint32(p.Hashes)
	for _, c := range []struct {
		name  string
		f     Filter
		p     Params
		items uint32
		want  bool
	}{
		{"empty", full(0), p, items, true},
		{"as full as its items can make it", full(bitsOfItems), p, items, true},
		{"one bit more than its items can set", full(bitsOfItems + 1), p, items, false},
		{"half full, and of many items", full(p.Bits / 2), p, ItemsMax, true},
		{"more than half full, and of many items", full(p.Bits/2 + 1), p, ItemsMax, false},
		{"all ones", full(p.Bits), p, items, false},
		{"too short", full(0)[1:], p, items, false},
		{"too long", append(full(0), 0), p, items, false},
		{"a bit set without items", full(1), p, 0, false},
		{"no dimensions", Filter{}, Params{}, items, false},
	} {
		if got := c.f.Plausible(c.p, c.items); got != c.want {
			t.Errorf("%s: Plausible is %v", c.name, got)
		}
	}
}

func TestMisusePanics(t *testing.T) {
	p := Size(10, 4, 3)
	for name, f := range map[string]func(){
		"Add to a filter of another size": func() { New(p)[1:].Add(p, nil, item(0)) },
		"Has of a filter of another size": func() { Filter(nil).Has(p, nil, item(0)) },
		"no dimensions":                   func() { Filter(nil).Has(Params{}, nil, item(0)) },
		"too long a salt":                 func() { New(p).Add(p, make([]byte, SaltBytesMax+1), item(0)) },
		"too many items":                  func() { Size(ItemsMax+1, 4, 3) },
		"too many witnesses":              func() { Size(10, WitnessesMax+1, WitnessesMax+1) },
		"a quorum of half":                func() { Size(10, 4, 2) },
		"a quorum of more than all":       func() { Size(10, 4, 5) },
		"no witnesses":                    func() { Size(10, 0, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			f()
		}()
	}
}

// FuzzFilter takes a filter from outside: nothing in it makes Has or Plausible fail, and a plausible one keeps its bound.
func FuzzFilter(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, []byte("ann"), uint32(3), uint8(2))
	f.Add(slices.Repeat([]byte{255}, 64), []byte{}, uint32(100), uint8(57))
	f.Fuzz(func(t *testing.T, bits, salt []byte, items uint32, hashes uint8) {
		bits = bits[:len(bits)&^7]
		if len(bits) == 0 || len(salt) > SaltBytesMax {
			return
		}
		p := Params{Bits: uint32(len(bits)) * 8, Hashes: hashes}
		fl := Filter(slices.Clone(bits)) // the fuzzer forbids changes of its own
		if fl.Plausible(p, items) && fl.Ones()*2 > uint64(p.Bits) {
			t.Errorf("a filter with %d of %d bits set is plausible", fl.Ones(), p.Bits)
		}
		before := fl.Ones()
		fl.Has(p, salt, item(0))
		fl.Add(p, salt, item(0))
		if after := fl.Ones(); !fl.Has(p, salt, item(0)) || after < before || after > before+uint64(hashes) {
			t.Errorf("adding an item of %d bits takes the filter from %d to %d", hashes, before, after)
		}
	})
}

func BenchmarkHas(b *testing.B) {
	p := Size(10_000, 32, 22)
	f := New(p)
	for i := range uint64(10_000) {
		f.Add(p, salt32(), item(i))
	}
	b.ReportAllocs()
	for b.Loop() {
		f.Has(p, salt32(), item(5))
	}
}

func salt32() []byte { return slices.Repeat([]byte{7}, 32) }

//go:build sbf && replay

package main

import (
	"math"
	"unsafe"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/trace"
	"github.com/entrain-network/entrain/wire"
)

// Operations of the program for tests, whose caller says what the chain knows. The environment is
// U64 time, U64 height, Hash seed, key sender, U64 value, U64 work, Bool whether there is a
// referee, Var its answers. The account has no tail.
//
//	100 create  environment, limits, config
//	101 apply   environment, message, or the message is in a third account
//	102 verify  key, signature, bytes: refused unless the signature is good
//	103 judge   U32 sequences, operation, tile, slice, U32 results at most, Hash root: a slice by a
//	            table in the third account and evidence in the fourth, whose external inputs are
//	            believed. The first account holds the progress: U32 elements, Bool done, Hash, words
//	104 floats  see floats
//	104 floats  see floats
const (
	testCreate = 100
	testApply  = 101
	testVerify = 102
	testJudge  = 103
	testFloat  = 104
)

const answersMax = 1 << 16

func (c *call) test(op uint8, r *wire.Reader) error {
	if op == testVerify {
		pub := key.Public(r.Hash())
		var sig key.Signature
		copy(sig[:], r.Bytes(len(sig)))
		if !key.Verify(pub, "test", r.Rest(), sig) {
			return errSigner
		}
		return nil
	}
	switch op {
	case testJudge:
		return c.judgeSlice(r)
	case testFloat:
		return c.floats()
	}
	env := coordinator.Env{NowMs: r.U64(), Height: r.U64(), Seed: r.Hash(), Sender: key.Public(r.Hash()), Value: r.U64(), Work: r.U64()}
	judged := r.Bool()
	answers := oracle{r.Var(answersMax)}
	if judged {
		env.Referee = &answers
	}
	switch op {
	case testCreate:
		l, config := coordinator.ReadLimits(r), coordinator.ReadConfig(r)
		if e := r.Done(); e != wire.OK {
			return e
		}
		_, err := coordinator.Create(c.list[0].data(), l, config, env)
		return err
	case testApply:
		message := r.Rest()
		if c.n == 3 {
			message = c.list[2].data()
		}
		s, err := coordinator.Attach(c.list[0].data())
		if err != nil {
			return err
		}
		m, err := coordinator.ParseMessage(message)
		if err != nil {
			return err
		}
		return s.Apply(env, m)
	}
	return errData
}

func (c *call) judgeSlice(r *wire.Reader) error {
	sequences, op, tile, slice, left, root := r.U32(), r.U32(), r.U32(), r.U32(), r.U32(), r.Hash()
	b := c.list[0].data()
	p := exact.Progress{
		Words: unsafe.Slice((*float32)(unsafe.Pointer(&b[40])), trace.ProgressWords), Used: int(*(*uint32)(unsafe.Pointer(&b[0]))), Left: int(left),
	}
	steps, e := trace.Tabled(c.list[2].data(), sequences, func(t *trace.GradientTails) trace.Tail { return t.Tail(dispute.Commitment{}) })
	if e != wire.OK {
		return e
	}
	w := exact.NewWorker(exact.Kernel{})
	w.Resume(&p)
	h, bad := trace.JudgeOn(w, steps, believed{}, op, tile, slice, root, c.list[3].data())
	if bad != nil {
		return errKind
	}
	*(*uint32)(unsafe.Pointer(&b[0])) = uint32(p.Used)
	if !p.Stopped {
		b[4] = 1
		copy(b[5:], h[:])
	}
	return nil
}

// floats computes with floats: the first account holds three in U64, then their results, again and
// again.
func (c *call) floats() error {
	b := unsafe.Slice((*uint64)(unsafe.Pointer(&c.list[0].data()[0])), c.list[0].len/8)
	f32 := func(i int) float32 { return math.Float32frombits(uint32(b[i])) }
	f64 := func(i int) float64 { return math.Float64frombits(b[i]) }
	for ; len(b) >= 3+floatResults; b = b[3+floatResults:] {
		x, y, z := f32(0), f32(1), f32(2)
		p, q := f64(0), f64(1)
		compare := uint64(0)
		for i, holds := range [6]bool{x < y, x <= y, x == y, p < q, p <= q, p == q} {
			if holds {
				compare |= 1 << uint(i)
			}
		}
		for i, v := range [6]float32{x + y, x - y, x * y, x / y, exact.FMA32(x, y, z), float32(p)} {
			b[3+i] = uint64(math.Float32bits(v))
		}
		for i, v := range [7]float64{p + q, p - q, p * q, p / q, math.Sqrt(p), float64(x), float64(int64(b[0]))} {
			b[9+i] = math.Float64bits(v)
		}
		b[16], b[17] = uint64(math.Float32bits(float32(b[0]))), compare
	}
	return nil
}

const floatResults = 15

// believed takes all external inputs.
type believed struct{}

func (believed) Open(_ trace.Read, evidence []byte) ([]uint32, error) {
	return trace.Words(evidence), nil
}

// oracle is a referee that says what the caller wrote down.
type oracle struct{ answers []byte }

func (o *oracle) next(n int) []byte {
	b := o.answers[:n]
	o.answers = o.answers[n:]
	return b
}

func (o *oracle) number() uint32 {
	b := o.next(4)
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func (o *oracle) Ops(uint32) uint32                          { return o.number() }
func (o *oracle) Tiles(dispute.Case, uint32) uint32          { return o.number() }
func (o *oracle) Slices(dispute.Case, uint32, uint32) uint32 { return o.number() }

func (o *oracle) Judge(dispute.Case, uint32, uint32, uint32, wire.Hash, []byte) (h wire.Hash, err error) {
	if o.next(1)[0] != 0 {
		return h, wire.ErrShort
	}
	copy(h[:], o.next(32))
	return h, nil
}

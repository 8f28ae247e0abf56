//go:build sbf && replay

package main

import (
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Operations of the program for tests, whose caller says what the chain knows. The environment is
// U64 time, U64 height, Hash seed, key sender, U64 value, Bool whether there is a referee, Var its
// answers. The account has no tail.
//
//	100 create  environment, limits, config
//	101 apply   environment, message, or the message is in a third account
//	102 verify  key, signature, bytes: refused unless the signature is good
const (
	testCreate = 100
	testApply  = 101
	testVerify = 102
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
	env := coordinator.Env{NowMs: r.U64(), Height: r.U64(), Seed: r.Hash(), Sender: key.Public(r.Hash()), Value: r.U64()}
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
		return send(s, env, message)
	}
	return errData
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

package dispute

import (
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Cases is a run's buffer as this package sees it.
type Cases struct{ record.Buffer }

func (s Cases) h() record.Header { return s.Header() }

// Env is what a message's host knows when it applies the message.
type Env struct {
	NowMs   uint64
	Seed    wire.Hash // chance of the block
	Sender  key.Public
	Referee Referee
	Proof   wire.Hash // hash of the message
}

// NoMember stands for a member's place where there is none.
const NoMember = record.NoMember

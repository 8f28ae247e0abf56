package headers

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cometbft/cometbft/light"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// Limits on trusting headers.
const (
	// trustFor is the time for which a header may serve to trust others. It is shorter than
	// host.UnbondMs, so that a signer of a false header can still be made to pay for it.
	trustFor = 5 * 24 * time.Hour
	// clockDrift is the most that a header's time may be ahead of this machine's clock.
	clockDrift = 30 * time.Second
	// BytesMax is the size of a header with the signatures and keys of SeatsMax replicas.
	BytesMax = 64 << 10
	// earlierMax is how much older than the newest known header one before all known ones may be. It
	// leaves a light stream time to prove a state again.
	earlierMax = 10 * time.Minute
	// keptMax is the number of headers that a client remembers.
	keptMax = 64
)

// ErrLied reports an answer that cannot be true: a state that no header proves, or a header that
// the chain's replicas have not signed. The Client leaves such an endpoint for another.
var ErrLied = errors.New("the endpoint does not tell the truth about the chain")

// ErrOld reports that the newest trusted header is too old to identify the chain's replicas.
var ErrOld = errors.New("what is known of the chain is too old to believe its replicas by")

// Trust is the trusted headers of a chain: an anchor, and headers signed by the replicas
// that a trusted header names. CometBFT's light client checks the signatures.
type Trust struct {
	chain  string
	mu     sync.Mutex
	Anchor ledger.Anchor // of the first header; set it before that comes
	// Genesis and its state hash are what the first header must follow from. They are nil if the
	// anchor is another header.
	Genesis     *cmttypes.GenesisDoc
	GenesisRoot wire.Hash
	known       []*cmttypes.LightBlock // by height; empty before the anchor's header
}

// New trusts no header of a chain yet.
func New(chain string) *Trust { return &Trust{chain: chain} }

// Known returns the trusted headers, by height.
func (t *Trust) Known() []*cmttypes.LightBlock {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.known)
}

// Newest returns the height of the newest trusted header, or 0 if there is none.
func (t *Trust) Newest() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) == 0 {
		return 0
	}
	return uint64(t.known[len(t.known)-1].Height)
}

// Want returns the header that must come first, if none has come yet. Height 0 means the newest.
func (t *Trust) Want() (height uint64, needed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Anchor.Height, len(t.known) == 0
}

// At returns the trusted header at a height, or nil.
func (t *Trust) At(height uint64) *cmttypes.LightBlock {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i, ok := t.find(int64(height)); ok {
		return t.known[i]
	}
	return nil
}

func (t *Trust) find(height int64) (int, bool) {
	return slices.BinarySearchFunc(t.known, height, func(b *cmttypes.LightBlock, h int64) int {
		switch {
		case b.Height < h:
			return -1
		case b.Height > h:
			return 1
		}
		return 0
	})
}

// Learn adds a signed header if the known headers prove it. A nil Trust believes everything.
func (t *Trust) Learn(b []byte, now time.Time) error {
	if t == nil {
		return nil
	}
	block, err := Parse(b, t.chain)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLied, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i, ok := t.find(block.Height)
	switch {
	case ok && t.known[i].Hash().String() == block.Hash().String():
		return nil
	case ok:
		return fmt.Errorf("%w: there are two headers of height %d with enough signatures, or one without", ErrLied, block.Height)
	case len(t.known) == 0:
		return t.begin(block, now)
	case i == 0:
		return t.earlier(block, now)
	}
	if err := verify(t.known[i-1], block, now); err != nil {
		return err
	}
	t.known = slices.Insert(t.known, i, block)
	if len(t.known) > keptMax {
		t.known = slices.Delete(t.known, 0, 1)
	}
	return nil
}

// earlier trusts a header before all known ones if the same replicas have signed it and it is not
// much older than the newest: a light stream may begin with a state that was proven a while ago. An
// older one could undo what a client remembers from before it was started.
func (t *Trust) earlier(block *cmttypes.LightBlock, now time.Time) error {
	first, last := t.known[0], t.known[len(t.known)-1]
	switch {
	case !bytes.Equal(block.ValidatorsHash, first.ValidatorsHash) || !block.Time.Before(first.Time) || last.Time.Sub(block.Time) > earlierMax:
		return fmt.Errorf("%w: header %d is older than all that is known", ErrLied, block.Height)
	case light.HeaderExpired(block.SignedHeader, trustFor, now):
		return fmt.Errorf("%w: header %d is of %v", ErrOld, block.Height, block.Time.Format(time.DateTime))
	}
	t.known = slices.Insert(t.known, 0, block)
	if len(t.known) > keptMax {
		t.known = slices.Delete(t.known, 1, 2)
	}
	return nil
}

// begin trusts the anchor's header.
func (t *Trust) begin(block *cmttypes.LightBlock, now time.Time) error {
	switch {
	case !t.Anchor.Hash.IsZero() && (uint64(block.Height) != t.Anchor.Height || wire.Hash(block.Hash()) != t.Anchor.Hash):
		return fmt.Errorf("%w: header %d has hash %X, where %v was to be expected at height %d", ErrLied, block.Height, block.Hash(), t.Anchor.Hash, t.Anchor.Height)
	case t.Genesis != nil && !t.follows(block):
		return fmt.Errorf("%w: header %d is not the first one after the genesis of chain %q", ErrLied, block.Height, t.chain)
	case light.HeaderExpired(block.SignedHeader, trustFor, now):
		return fmt.Errorf("%w: header %d is of %v", ErrOld, block.Height, block.Time.Format(time.DateTime))
	}
	t.known = append(t.known, block)
	return nil
}

// follows reports whether a header is the first one after the genesis.
func (t *Trust) follows(block *cmttypes.LightBlock) bool {
	var keys []*cmttypes.Validator
	for _, v := range t.Genesis.Validators {
		keys = append(keys, cmttypes.NewValidator(v.PubKey, v.Power))
	}
	return block.Height == 1 && bytes.Equal(block.ValidatorsHash, cmttypes.NewValidatorSet(keys).Hash()) &&
		bytes.Equal(block.AppHash, t.GenesisRoot[:])
}

// verify checks a header against a trusted one.
func verify(by, block *cmttypes.LightBlock, now time.Time) error {
	err := light.Verify(by.SignedHeader, by.ValidatorSet, block.SignedHeader, block.ValidatorSet, trustFor, now, clockDrift, light.DefaultTrustLevel)
	var old light.ErrOldHeaderExpired
	if errors.As(err, &old) {
		return fmt.Errorf("%w: %w", ErrOld, err)
	}
	if err != nil {
		return fmt.Errorf("%w: header %d: %w", ErrLied, block.Height, err)
	}
	return nil
}

// Open takes the headers from the front of an answer:
//
//	U32 count | count × Var header | U64 height of the header that proves it | content
func (t *Trust) Open(b []byte, now time.Time) (content []byte, header uint64, err error) {
	r := wire.NewReader(b)
	for range r.U32() {
		block := r.Var(BytesMax)
		if r.Err() != wire.OK {
			break
		}
		if err := t.Learn(block, now); err != nil {
			return nil, 0, err
		}
	}
	header = r.U64()
	if err := r.Err().OrNil(); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrLied, err)
	}
	return r.Bytes(r.Len()), header, nil
}

// Check returns an error unless a trusted header has the hash of the ledger's state.
func (t *Trust) Check(height uint64, root wire.Hash) error {
	if t == nil {
		return nil
	}
	b := t.At(height)
	if b == nil {
		return fmt.Errorf("%w: no header of height %d came before the state it is to prove", ErrLied, height)
	}
	if string(b.AppHash) != string(root[:]) {
		return fmt.Errorf("%w: header %d has hash %X of the state, what came leads to %v", ErrLied, height, b.AppHash, root)
	}
	return nil
}

// Parse parses a header with its signatures and the keys of the signers.
func Parse(b []byte, chain string) (*cmttypes.LightBlock, error) {
	if len(b) > BytesMax {
		return nil, fmt.Errorf("header of %d bytes with its signatures, at most %d", len(b), BytesMax)
	}
	var p cmtproto.LightBlock
	if err := p.Unmarshal(b); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	block, err := cmttypes.LightBlockFromProto(&p)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if block.ValidatorSet == nil || block.SignedHeader == nil || len(block.ValidatorSet.Validators) > host.SeatsMax {
		return nil, errors.New("header without signatures, or with too many")
	}
	if err := block.ValidateBasic(chain); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if err := block.ValidatorSet.VerifyCommitLight(chain, block.Commit.BlockID, block.Height, block.Commit); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return block, nil
}

// Encode returns what Parse parses.
func Encode(b *cmttypes.LightBlock) ([]byte, error) {
	p, err := b.ToProto()
	if err != nil {
		return nil, err
	}
	return p.Marshal()
}

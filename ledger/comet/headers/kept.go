package headers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cometbft/cometbft/light"
	sm "github.com/cometbft/cometbft/state"
	cmtstore "github.com/cometbft/cometbft/store"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/entrain-network/entrain/atomicfile"
)

const fileMode = 0o644

// Kept is the signed headers that a replica serves: those of the blocks that it keeps and,
// forever, the first one and each pair between which the set of replicas changed. They lead a
// client that trusts an old header to the newest one, even if the blocks between were pruned.
type Kept struct {
	Blocks *cmtstore.BlockStore
	States sm.Store
	Dir    string // directory of milestones, one file each
	Chain  string
}

// errNone reports a header that is not kept.
var errNone = errors.New("header is not kept")

// At returns the header at a height.
func (l *Kept) At(height int64) (*cmttypes.LightBlock, error) {
	meta := l.Blocks.LoadBlockMeta(height)
	if meta == nil {
		return l.milestone(height)
	}
	commit := l.Blocks.LoadBlockCommit(height)
	if commit == nil {
		commit = l.Blocks.LoadSeenCommit(height)
	}
	vals, err := l.States.LoadValidators(height)
	if err != nil || commit == nil {
		return l.milestone(height)
	}
	return &cmttypes.LightBlock{SignedHeader: &cmttypes.SignedHeader{Header: &meta.Header, Commit: commit}, ValidatorSet: vals}, nil
}

func (l *Kept) milestone(height int64) (*cmttypes.LightBlock, error) {
	b, err := os.ReadFile(l.path(height))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %d", errNone, height)
	}
	if err != nil {
		return nil, err
	}
	return Parse(b, l.Chain)
}

func (l *Kept) path(height int64) string { return filepath.Join(l.Dir, fmt.Sprintf("%020d", height)) }

// Keep stores a header if it is a milestone.
func (l *Kept) Keep(height int64) error {
	meta := l.Blocks.LoadBlockMeta(height)
	if meta == nil {
		return nil
	}
	before := l.Blocks.LoadBlockMeta(height - 1)
	milestone := height == 1 || string(meta.Header.ValidatorsHash) != string(meta.Header.NextValidatorsHash) ||
		before != nil && string(before.Header.ValidatorsHash) != string(meta.Header.ValidatorsHash)
	if !milestone {
		return nil
	}
	block, err := l.At(height)
	if err != nil {
		return err
	}
	return l.Write(block)
}

// Write stores a header.
func (l *Kept) Write(block *cmttypes.LightBlock) error {
	b, err := Encode(block)
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(l.path(block.Height), fileMode, b)
}

// milestones returns the heights of all milestones between two heights, in order.
func (l *Kept) milestones(from, to int64) ([]int64, error) {
	entries, err := os.ReadDir(l.Dir)
	if err != nil {
		return nil, err
	}
	var list []int64
	for _, e := range entries {
		h, err := strconv.ParseInt(strings.TrimLeft(e.Name(), "0"), 10, 64)
		if err == nil && h > from && h < to {
			list = append(list, h)
		}
	}
	slices.Sort(list)
	return list, nil
}

// Way returns the headers by which a client that trusts header from can come to trust header to,
// the last of them.
func (l *Kept) Way(from, to int64) ([]*cmttypes.LightBlock, error) {
	if from >= to {
		return nil, nil
	}
	last, err := l.At(to)
	if err != nil {
		return nil, err
	}
	by, err := l.At(from)
	if err != nil { // pruned; the set of replicas is that of the next milestone, or of the last header
		by = nil
	}
	between, err := l.milestones(from, to)
	if err != nil {
		return nil, err
	}
	var list []*cmttypes.LightBlock
	for i := 0; ; {
		if by != nil && leads(by, last) || i == len(between) {
			return append(list, last), nil
		}
		// The farthest header that one step reaches; at least the next.
		next, err := l.At(between[i])
		if err != nil {
			return nil, err
		}
		for i++; by != nil && i < len(between); i++ {
			further, err := l.At(between[i])
			if err != nil {
				return nil, err
			}
			if !leads(by, further) {
				break
			}
			next = further
		}
		list, by = append(list, next), next
	}
}

// leads reports whether trusting one header suffices to trust another. Age does not matter here.
func leads(by, block *cmttypes.LightBlock) bool {
	return light.Verify(by.SignedHeader, by.ValidatorSet, block.SignedHeader, block.ValidatorSet,
		1<<62, by.Time.Add(time.Second), 1<<62, light.DefaultTrustLevel) == nil
}

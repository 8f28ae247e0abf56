// Package bittensor connects a run to a subnet of Bittensor: miners commit who they are in the run,
// and validators set the subnet's weights by the run's scores. It needs an endpoint of the chain
// and the wallet's keys; the run itself stays on its own chain.
//
// The numbers of calls, the places of storage and what a transaction carries are read from the
// runtime's own description, so that the package outlives upgrades that keep the names.
package bittensor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/entrain-network/entrain/key"
)

// module is the pallet of the subnets.
const module = "SubtensorModule"

// Subnet is a subnet of a chain.
type Subnet struct {
	Client *Client
	NetUID uint16
	// Poll is how often to look for new blocks.
	Poll time.Duration
}

func (s Subnet) netuid() []byte { return binary.LittleEndian.AppendUint16(nil, s.NetUID) }

// Exists returns an error if the chain has no such subnet.
func (s Subnet) Exists(ctx context.Context) error {
	r, err := s.Client.get(ctx, module, "NetworksAdded", s.netuid())
	if err == nil && r.u8() == 0 {
		err = fmt.Errorf("the chain has no subnet %d; check --netuid", s.NetUID)
	}
	return err
}

// Neuron is a registered hotkey of a subnet.
type Neuron struct {
	UID    uint16  `json:"uid"`
	Hotkey Account `json:"hotkey"`
	// Member is the key that the hotkey is in runs, zero if it has not committed to one.
	Member key.Public `json:"member,omitzero"`
	// Where is what it committed besides, the address of its bucket.
	Where string `json:"bucket,omitempty"`
	// Weight is the weight that Weigh found, of 65,535.
	Weight *uint16 `json:"weight,omitempty"`
}

// Neurons returns the registered hotkeys in the order of their numbers.
func (s Subnet) Neurons(ctx context.Context) ([]Neuron, error) {
	r, err := s.Client.get(ctx, module, "SubnetworkN", s.netuid())
	if err != nil {
		return nil, err
	}
	list := make([]Neuron, r.u16())
	for i := range list {
		uid := uint16(i)
		r, err := s.Client.get(ctx, module, "Keys", s.netuid(), binary.LittleEndian.AppendUint16(nil, uid))
		if err != nil {
			return nil, err
		}
		n := Neuron{UID: uid, Hotkey: r.account()}
		if r.err != nil {
			return nil, r.err
		}
		if n.Member, n.Where, err = s.link(ctx, n.Hotkey); err != nil {
			return nil, err
		}
		list[i] = n
	}
	return list, nil
}

// UID returns the number of a hotkey on the subnet, and whether it has one.
func (s Subnet) UID(ctx context.Context, hotkey Account) (uint16, bool, error) {
	r, err := s.Client.get(ctx, module, "Uids", s.netuid(), hotkey[:])
	if err != nil || len(r.b) < 2 { // nothing is one byte
		return 0, false, err
	}
	return r.u16(), true, r.err
}

// Weigh sets the weights of the neurons to those that a hotkey has set.
func (s Subnet) Weigh(ctx context.Context, hotkey Account, neurons []Neuron) error {
	for _, n := range neurons {
		if n.Hotkey != hotkey {
			continue
		}
		row, err := s.Weights(ctx, n.UID)
		for i := range neurons {
			if w, ok := row[neurons[i].UID]; ok {
				neurons[i].Weight = &w
			}
		}
		return err
	}
	return fmt.Errorf("%s is not registered on subnet %d", hotkey, s.NetUID)
}

// WriteTable writes a line of text for each neuron.
func WriteTable(w io.Writer, neurons []Neuron) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "UID\tHOTKEY\tMEMBER\tBUCKET\tWEIGHT")
	for _, n := range neurons {
		member, weight := "-", "-"
		if !n.Member.IsZero() {
			member = n.Member.String()
		}
		if n.Weight != nil {
			weight = fmt.Sprint(*n.Weight)
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\n", n.UID, n.Hotkey, member, n.Where, weight)
	}
	return t.Flush()
}

// Enroll is Register unless the hotkey is registered, and reports whether it was not.
func (s Subnet) Enroll(ctx context.Context, coldkey Key, hotkey Account) (bool, error) {
	_, registered, err := s.UID(ctx, hotkey)
	if err != nil || registered {
		return false, err
	}
	err = s.Register(ctx, coldkey, hotkey)
	return err == nil, err
}

// Register registers a hotkey for the subnet's current price, which the coldkey pays.
func (s Subnet) Register(ctx context.Context, coldkey Key, hotkey Account) error {
	call, err := s.Client.meta.call(module, "burned_register")
	if err != nil {
		return err
	}
	call = append(append(call, s.netuid()...), hotkey[:]...)
	return s.Client.submit(ctx, coldkey, call, s.Poll)
}

// Weights returns what the hotkey of the given number has set: by number, of 65,535.
func (s Subnet) Weights(ctx context.Context, uid uint16) (map[uint16]uint16, error) {
	r, err := s.Client.get(ctx, module, "Weights", s.netuid(), binary.LittleEndian.AppendUint16(nil, uid))
	if err != nil {
		return nil, err
	}
	m := map[uint16]uint16{}
	for range r.count() {
		to := r.u16()
		m[to] = r.u16()
	}
	return m, r.err
}

// ErrCommitReveal says that the subnet wants weights hidden at first, and that the chain does not
// show them by itself: Hide and Show do it.
var ErrCommitReveal = errors.New("the subnet wants weights hidden for an hour or more before they count: entrain validate --bittensor sets them so")

// timelocked reports whether the subnet takes weights only if they are encrypted for a time. The
// error is that nobody can set weights with this version of the program, or ErrCommitReveal.
func (s Subnet) timelocked(ctx context.Context) (bool, error) {
	r, err := s.Client.get(ctx, module, "CommitRevealWeightsEnabled", s.netuid())
	if err != nil || r.u8() == 0 {
		return false, err
	}
	_, known := s.Client.meta.pallets[module].storage[epochItem]
	if _, err := s.Client.meta.call(module, timelockCall); err != nil || !known {
		return true, ErrCommitReveal
	}
	if r, err = s.Client.get(ctx, module, "CommitRevealWeightsVersion"); err != nil {
		return true, err
	}
	if v := r.u16(); v != timelockVersion || r.err != nil {
		return true, fmt.Errorf("subnet %d wants weights timelocked by version %d of the chain's rules, and this program knows %d: "+
			"install a newer one, or set them with btcli", s.NetUID, v, timelockVersion)
	}
	return true, nil
}

// CanSetWeights returns an error if this version of the program cannot set weights on the subnet,
// neither by SetWeights nor by Hide.
func (s Subnet) CanSetWeights(ctx context.Context) error {
	if _, err := s.timelocked(ctx); err != nil && !errors.Is(err, ErrCommitReveal) {
		return err
	}
	_, _, err := s.Client.extras(0, 0, nil)
	return err
}

// SetWeights sets the hotkey's weights, given by number; they need not add up to anything. On a
// subnet that wants them hidden at first, it returns in what time the chain shows them, and they
// count.
func (s Subnet) SetWeights(ctx context.Context, hotkey Key, scores map[uint16]float64) (hidden time.Duration, err error) {
	timelocked, err := s.timelocked(ctx)
	if err != nil {
		return 0, err
	}
	row, version, err := s.row(ctx, scores)
	if err != nil {
		return 0, err
	}
	if timelocked {
		return s.commitTimelocked(ctx, hotkey, row, version)
	}
	call, err := s.Client.meta.call(module, "set_weights")
	if err != nil {
		return 0, err
	}
	return 0, s.Client.submit(ctx, hotkey, append(append(call, row...), version...), s.Poll)
}

// row encodes the subnet's number and weights, and the version of the subnet's software.
func (s Subnet) row(ctx context.Context, scores map[uint16]float64) (row, version []byte, err error) {
	r, err := s.Client.get(ctx, module, "WeightsVersionKey", s.netuid())
	if err != nil {
		return nil, nil, err
	}
	uids, weights := scaled(scores)
	if len(uids) == 0 {
		return nil, nil, errors.New("nobody has a positive score, so there are no weights to set")
	}
	return appendU16s(appendU16s(s.netuid(), uids), weights), binary.LittleEndian.AppendUint64(nil, r.u64()), r.err
}

// Row returns the weights that scores give: by number, of 65,535.
func Row(scores map[uint16]float64) map[uint16]uint16 {
	uids, weights := scaled(scores)
	row := map[uint16]uint16{}
	for i, uid := range uids {
		row[uid] = weights[i]
	}
	return row
}

// scaled returns the positive scores in the order of the numbers, so that the largest is 65,535.
func scaled(scores map[uint16]float64) (uids, weights []uint16) {
	largest := 0.0
	for _, v := range scores {
		if !math.IsInf(v, 0) {
			largest = max(largest, v)
		}
	}
	for uid := range uint32(math.MaxUint16 + 1) {
		v, ok := scores[uint16(uid)]
		if w := math.Round(v / largest * math.MaxUint16); ok && v > 0 && w >= 1 && w <= math.MaxUint16 {
			uids, weights = append(uids, uint16(uid)), append(weights, uint16(w))
		}
	}
	return uids, weights
}

// Scores returns the positive scores of members by the numbers of their hotkeys; of returns the
// score of a member, and 0 for a key that is none. A member that several hotkeys name counts once,
// for the lowest number.
func Scores(neurons []Neuron, of func(key.Public) float64) map[uint16]float64 {
	scores, seen := map[uint16]float64{}, map[key.Public]bool{{}: true}
	for _, n := range neurons {
		if v := of(n.Member); v > 0 && !seen[n.Member] {
			seen[n.Member], scores[n.UID] = true, v
		}
	}
	return scores
}

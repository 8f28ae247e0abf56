package blocks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/lab/check"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/wire"
)

// The members come from several addresses, as a replica limits what it takes from one.
const (
	addresses = 8
	atOnce    = 192 // transactions under way
)

// members are the keys of a run, which send what is due.
type members struct {
	owner    *ledger.Signer
	keys     []*ledger.Signer
	index    map[key.Public]int
	endpoint string
	clients  []*http.Client
	places   chan struct{}
	sending  sync.WaitGroup

	roundMs, epochMs uint64 // the longest round and epoch
	quiet            bool   // witnesses wait before they report

	// sent holds what was sent in the round, the warmup or the wait for members that it begins with.
	sent                map[sending]bool
	epoch               coordinator.Epoch
	round               coordinator.Round
	phase               coordinator.Phase
	txs, bytes, refused atomic.Uint64
	refusal             atomic.Pointer[string] // the last one
	failed              atomic.Pointer[error]
}

// sending names a message that is due once.
type sending struct {
	from  int
	kind  uint8
	about coordinator.Member
	round coordinator.Round
}

func newMembers(n int) *members {
	m := &members{roundMs: 20_000, epochMs: 30_000, index: map[key.Public]int{}, places: make(chan struct{}, atOnce), sent: map[sending]bool{}}
	m.owner = &ledger.Signer{Chain: chainID, Key: secret("owner", 0)}
	for i := range n {
		k := secret("member", i)
		m.keys, m.index[k.Public()] = append(m.keys, &ledger.Signer{Chain: chainID, Key: k}), i
	}
	for i := range addresses {
		from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i))}
		m.clients = append(m.clients, &http.Client{Transport: &http.Transport{
			DialContext: (&net.Dialer{LocalAddr: from}).DialContext, MaxIdleConnsPerHost: atOnce,
		}})
	}
	return m
}

func secret(name string, i int) key.Private {
	return key.FromSeed(wire.Sum("entrain/lab/blocks/key", []byte(name), wire.AppendU64(nil, uint64(i))))
}

func hash(name string) wire.Hash { return wire.Sum("entrain/lab/blocks", []byte(name)) }

// found creates the run: rounds end with the reports, one result in twenty is checked, and an epoch
// ends every half minute of this chain's fast time.
func (m *members) found(ctx context.Context) error {
	n := uint32(len(m.keys))
	limits := coordinator.Limits{Members: min(n+n/8, coordinator.MembersMax), Witnesses: uint16(min(32, n))}
	config := coordinator.Config{
		Name: runName, MinMembers: n / 2, StartMembers: n, WaitingMs: 1_000, WarmupMs: 60_000, RoundTrainMs: m.roundMs, RoundWitnessMs: 5_000,
		CooldownMs: 60_000, EpochMs: m.epochMs, TotalSteps: 1 << 30, BatchStart: n, BatchEnd: n, SequenceTokens: 16, MissedMax: 200,
		VerificationPercent: 5, VerifyMs: 60_000, DisputeMs: 60_000, UnbondMs: 60_000, Rate: 1,
		StateHash: hash("state"), ModelHash: hash("model"), SpecHash: host.SpecHash(nil), Owner: m.owner.Key.Public(),
	}
	fund := host.ToRun(runName, coordinator.Fund{})
	fund.Value = wealth / 2
	for _, body := range []host.Body{host.CreateRun{Limits: limits, Config: config}, fund} {
		tx, err := m.owner.Sign(time.Now(), body)
		if err != nil {
			return err
		}
		if err := m.post(ctx, 0, tx); err != nil {
			return err
		}
	}
	if m.refused.Load() > 0 {
		return fmt.Errorf("blocks: the chain refused the run: %s", *m.refusal.Load())
	}
	return nil
}

// act sends what is due in a state and was not sent yet.
func (m *members) act(ctx context.Context, now ledger.Snapshot) {
	s := now.State
	if s.Round() != m.round || s.Phase() != m.phase || s.Epoch() != m.epoch {
		if s.Phase() != coordinator.RoundTrain && s.Phase() != coordinator.RoundWitness || s.Round() != m.round {
			clear(m.sent)
		}
		m.epoch, m.round, m.phase = s.Epoch(), s.Round(), s.Phase()
	}
	switch s.Phase() {
	case coordinator.WaitingForMembers:
		for i, k := range m.keys {
			if at, known := s.Find(k.Key.Public()); !known || !s.Status(at).Present() {
				m.send(ctx, sending{from: i}, coordinator.Join{Speed: 1})
			}
		}
	case coordinator.Warmup:
		params, _ := s.Params()
		for i := range s.Count() {
			if s.Status(i) == coordinator.StatusWaiting {
				m.send(ctx, sending{from: m.at(s, i)}, coordinator.Ready{Epoch: s.Epoch(), Params: params})
			}
		}
	case coordinator.RoundTrain, coordinator.RoundWitness:
		if !m.quiet {
			m.report(ctx, s)
		}
	case coordinator.Cooldown:
		params, _ := s.Params()
		for _, i := range s.Checkpointers() {
			m.send(ctx, sending{from: m.at(s, i)}, coordinator.Checkpoint{Epoch: s.Epoch(), Params: params, Manifest: hash("manifest")})
		}
	}
	for _, v := range s.Checks() {
		if !v.Disputed {
			m.pass(ctx, s, v)
		}
	}
}

func (m *members) at(s coordinator.State, i coordinator.Member) int { return m.index[s.Key(i)] }

// report has the witnesses of the round say that they hold everything.
func (m *members) report(ctx context.Context, s coordinator.State) {
	r, ok := s.At(s.Round())
	if !ok {
		return
	}
	params, _ := s.Params()
	said := coordinator.Witness{Round: r.Number(), Complete: true, Params: params, Prev: params, Commitments: make([]byte, r.Filter().Bits/8)}
	if a, ok := s.At(r.Attests()); ok {
		for i := range s.Count() {
			if a.Expected(i) {
				said.Held = coordinator.SetHeld(said.Held, i)
			}
		}
	}
	for _, i := range r.Witnesses() {
		if s.Status(i) == coordinator.StatusActive {
			m.send(ctx, sending{from: m.at(s, i), round: r.Number()}, said)
		}
	}
}

// pass has a verifier show that it computed the result, which is right.
func (m *members) pass(ctx context.Context, s coordinator.State, v dispute.Check) {
	to := sending{from: m.at(s, v.Verifier), kind: 1, about: v.Member, round: v.Round}
	if m.sent[to] {
		return
	}
	truth := check.Traces(dispute.Case{Commitment: dispute.Commitment{
		Run: s.ID(), Epoch: v.Epoch, Round: v.Round, Member: v.Member, Share: v.Share, Params: v.Params,
	}, Step: v.Step, Sequences: v.Sequences})[0]
	m.send(ctx, to, coordinator.Pass{
		Round: v.Round, Member: v.Member, Commitment: truth.Result.Sign(m.keys[m.at(s, v.Member)].Key), Gradient: check.Gradient(truth.Value),
	})
}

// send sends a message unless it was sent.
func (m *members) send(ctx context.Context, what sending, body coordinator.Message) {
	if m.sent[what] {
		return
	}
	m.sent[what] = true
	tx, err := m.keys[what.from].Sign(time.Now(), host.ToRun(runName, body))
	if err != nil {
		panic(err) // every body of this package can be written
	}
	m.places <- struct{}{}
	m.sending.Go(func() {
		defer func() { <-m.places }()
		if err := m.post(ctx, what.from, tx); err != nil && ctx.Err() == nil {
			m.failed.Store(&err)
		}
	})
}

// wait waits for all that is under way, and returns an error if something could not be sent.
func (m *members) wait() error {
	m.sending.Wait()
	if err := m.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// post sends a transaction, and again until it is in a block or refused. Refusals are counted: what
// is due may be so no longer when it arrives.
func (m *members) post(ctx context.Context, from int, tx []byte) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.endpoint+"/v1/txs", bytes.NewReader(tx))
		if err != nil {
			return err
		}
		res, err := m.clients[from%len(m.clients)].Do(req)
		if err != nil {
			return err
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		var r comet.Receipt
		switch {
		case err != nil:
			return err
		case json.Unmarshal(b, &r) != nil: // not a receipt
			return fmt.Errorf("blocks: %s: %s", res.Status, b)
		}
		switch {
		case !r.Settled:
			continue
		case r.Code != host.CodeOK:
			m.refused.Add(1)
			m.refusal.Store(&r.Text)
		default:
			m.txs.Add(1)
			m.bytes.Add(uint64(len(tx)))
		}
		return nil
	}
}

package costs

import (
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/lab/check"
	"github.com/entrain-network/entrain/wire"
)

const (
	chainID = "costs"
	runName = "run"
	bornMs  = 1_800_000_000_000
	wealth  = 1 << 52
	day     = 24 * 3600 * 1000
)

// world is a chain with one run.
type world struct {
	n        int
	h        *host.Host
	owner    key.Private
	stranger key.Private
	keys     []key.Private // the members'
	referee  dispute.Referee
	plain    bool // what is sampled is delivered, and not measured
	seed     wire.Hash
	nonce    uint64
	rows     []*Row
	sent     []sample
}

func newWorld(n int) *world {
	w := &world{n: n, owner: secret("owner", 0), stranger: secret("stranger", 0), referee: check.Program{}, seed: hash("seed")}
	for i := range n {
		w.keys = append(w.keys, secret("member", i))
	}
	g := host.Genesis{Chain: chainID, TimeMs: bornMs}
	for _, k := range []key.Private{w.owner, w.keys[0], w.keys[1], w.keys[n-1]} {
		g.Accounts = append(g.Accounts, host.Allocation{Key: k.Public(), Amount: wealth})
	}
	slices.SortFunc(g.Accounts, func(a, b host.Allocation) int { return a.Key.Compare(b.Key) })
	var err error
	if w.h, err = host.NewHost(g, w.rules()); err != nil {
		panic(err)
	}
	w.block(0)
	return w
}

func (w *world) rules() host.Rules {
	return host.Rules{Referees: func([]byte) (dispute.Referee, error) { return w.referee, nil }, ChanceKey: func(key.Public) bool { return true }}
}

func secret(name string, i int) key.Private {
	return key.FromSeed(wire.Sum("entrain/lab/costs/key", []byte(name), wire.AppendU64(nil, uint64(i))))
}

func (w *world) tx(from key.Private, body host.Body) []byte {
	w.nonce++
	b, err := host.Tx{Chain: chainID, Nonce: w.nonce, ExpiresMs: w.h.TimeMs() + host.TxLifetimeMs/2, Body: body}.Sign(from)
	if err != nil {
		panic(err)
	}
	return b
}

// block makes a block, some time after the last, in which all transactions are accepted.
func (w *world) block(ms uint64, txs ...[]byte) {
	w.h.Begin(host.Block{Height: w.h.Height() + 1, TimeMs: w.h.TimeMs() + ms, Seed: w.seed})
	for _, tx := range txs {
		if err := w.h.Deliver(tx); err != nil {
			w.fail("in block %d: %w", w.h.Height(), err)
		}
	}
	w.h.Commit()
}

func (w *world) say(i coordinator.Member, m coordinator.Message) {
	w.sample(w.keys[i], host.ToRun(runName, m))
}

// all has members send what make returns for each of them, in one block.
func (w *world) all(members []key.Private, m func(i int) coordinator.Message) {
	var txs [][]byte
	for i, k := range members {
		txs = append(txs, w.tx(k, host.ToRun(runName, m(i))))
	}
	w.block(0, txs...)
}

func (w *world) state() coordinator.State {
	v, _ := w.h.View(runName)
	return v.State
}

// present returns the last member that is present.
func (w *world) present() coordinator.Member {
	s := w.state()
	for i := s.Count(); i > 0; i-- {
		if s.Status(i - 1).Present() {
			return i - 1
		}
	}
	w.fail("all members are gone")
	return 0
}

// config is that of both runs, but for how they exchange.
func (w *world) config() (coordinator.Limits, coordinator.Config) {
	n := uint32(w.n)
	return coordinator.Limits{Members: n + 2, Witnesses: uint16(min(32, n))}, coordinator.Config{
		Name: runName, MinMembers: 2, StartMembers: 2, WaitingMs: day, WarmupMs: day, RoundTrainMs: 30_000, RoundWitnessMs: 5_000,
		CooldownMs: day, EpochMs: 40_000, TotalSteps: 100, BatchStart: n, BatchEnd: n, SequenceTokens: 16, MissedMax: 200,
		VerificationPercent: 100, VerifyMs: day, DisputeMs: day, UnbondMs: day, Rate: 1 << 32,
		StateHash: hash("state"), ModelHash: hash("model"), SpecHash: host.SpecHash(nil), Owner: w.owner.Public(),
	}
}

// found creates the run, has all members join it but the last, which is a sample, and opens its
// first round.
func (w *world) found(l coordinator.Limits, c coordinator.Config) {
	w.sample(w.owner, host.CreateRun{Limits: l, Config: c})
	w.sample(w.owner, bring(1<<49, coordinator.Fund{}))
	w.all(w.keys[:w.n-1], func(int) coordinator.Message { return coordinator.Join{Speed: 1} })
	w.sample(w.keys[w.n-1], bring(1<<20, coordinator.Join{Speed: 1}))
	w.sample(w.owner, bring(1<<20, coordinator.Deposit{Member: w.keys[w.n-1].Public()}))
	w.sample(w.keys[1], host.Announce{Run: runName, Addrs: []string{"/ip4/1.2.3.4/tcp/5"}})
	w.block(day)
	ready := coordinator.Ready{Epoch: 1, Params: c.ModelHash}
	w.say(0, ready)
	w.all(w.keys[1:w.n-1], func(int) coordinator.Message { return ready })
	w.say(coordinator.Member(w.n-1), ready)
}

func bring(value uint64, m coordinator.Message) host.RunMessage {
	b := host.ToRun(runName, m)
	b.Value = value
	return b
}

// peers plays a run between peers: a round, a dispute, the end of an epoch and of the run.
func (w *world) peers() {
	l, c := w.config()
	l.Speeds, c.Sharing = true, coordinator.SpeedShares
	w.found(l, c)
	w.say(1, coordinator.SetSpeed{Speed: 2})
	w.draw()
	w.verdicts()
	w.dispute()
	w.sample(w.owner, host.ToRun(runName, coordinator.Pause{}))
	w.block(c.EpochMs)
	for w.state().Phase() != coordinator.Cooldown && w.state().Round() < 8 {
		w.report(false)
	}
	for _, i := range w.state().Checkpointers()[:2] {
		w.say(i, coordinator.Checkpoint{Epoch: 1, Params: c.ModelHash, Manifest: hash("manifest")})
	}
	w.block(c.CooldownMs)
	w.sample(w.owner, host.ToRun(runName, coordinator.Change{
		Rate: c.Rate + 1, WaitingMs: c.WaitingMs, WarmupMs: c.WarmupMs, RoundTrainMs: c.RoundTrainMs, RoundWitnessMs: c.RoundWitnessMs,
		CooldownMs: c.CooldownMs, EpochMs: c.EpochMs,
	}))
	w.block(coordinator.NoticeMs)
	w.sample(w.owner, host.ToRun(runName, coordinator.Resume{}))
	w.owners()
	w.say(w.present(), coordinator.Claim{})
	w.say(w.present(), coordinator.Withdraw{})
	w.sample(w.owner, host.ToRun(runName, coordinator.End{}))
	w.block(day)
	w.block(2 * day)
	w.sample(w.owner, host.ToRun(runName, coordinator.Refund{Amount: 1 << 30}))
	w.sample(w.owner, host.CloseRun{Run: runName})
}

// draw plays rounds until checks are drawn.
func (w *world) draw() {
	for len(w.state().Checks()) == 0 && w.state().Round() < 4 {
		w.report(w.state().Round() < 3)
	}
}

// owners plays what owners and purses do.
func (w *world) owners() {
	w.sample(w.owner, host.Transfer{To: w.stranger.Public(), Amount: 1 << 40})
	w.sample(w.owner, host.CreatePool{Name: "pool", Runs: []string{runName}})
	w.sample(w.owner, host.Lend{Pool: "pool", Amount: 1 << 30})
	w.sample(w.owner, host.Collect{Pool: "pool"})
	w.sample(w.owner, host.ClosePool{Pool: "pool"})
	w.sample(w.owner, host.Require{Run: runName, Program: "v1.0.0"})
	w.sample(w.keys[w.n-1], host.SetName{Run: runName, Name: "ada", Team: "reds"})
	node := w.keys[w.n-1]
	w.sample(node, host.Delegate{Run: runName, Certificate: host.NewCertificate(w.owner, chainID, runName, node.Public(), w.h.TimeMs()+day)})
	w.sample(w.owner, host.Revoke{Run: runName, Node: node.Public()})
	some := []key.Public{w.stranger.Public()}
	for _, k := range w.keys[:w.n-1] {
		some = append(some, k.Public())
	}
	slices.SortFunc(some, key.Public.Compare)
	for part := range slices.Chunk(some, host.AdmitKeysMax) {
		w.block(0, w.tx(w.owner, host.Admit{Run: runName, Add: part}))
	}
	w.sample(w.owner, host.Admit{Run: runName, Listed: true, Add: some[:1]})
	chance, replica := secret("chance", 0).Public(), secret("replica", 0)
	w.sample(w.owner, host.Stake{
		Replica: replica.Public(), Amount: 1 << 48, Chance: chance, Consent: host.Consent(replica, chainID, w.owner.Public(), chance),
	})
	w.sample(w.owner, host.Leave{Replica: replica.Public()})
}

// report sends the reports of all witnesses of the round, of which the first and the last are
// samples if it says so.
func (w *world) report(samples bool) {
	s := w.state()
	r, ok := s.At(s.Round())
	if !ok {
		w.fail("no round in phase %v", s.Phase())
		return
	}
	params, _ := s.Params()
	m := coordinator.Witness{Round: r.Number(), Complete: true, Params: params, Prev: params, Commitments: make([]byte, r.Filter().Bits/8)}
	if a, ok := s.At(r.Attests()); ok {
		for i := range s.Count() {
			if _, committed := a.Committed(i); a.Expected(i) && (committed || !s.Limits().Buckets) {
				m.Held = coordinator.SetHeld(m.Held, i)
			}
		}
	}
	list := r.Witnesses()
	for k, i := range list {
		if s = w.state(); s.Round() != r.Number() || s.Phase() != coordinator.RoundTrain && s.Phase() != coordinator.RoundWitness {
			return // a quorum sufficed
		}
		if s.Status(i) != coordinator.StatusActive {
			continue // convicted since
		}
		if samples && (k == 0 || k == len(list)-1 || uint32(k)+1 == r.Quorum()) {
			w.say(i, m)
		} else {
			w.block(0, w.tx(w.keys[i], host.ToRun(runName, m)))
		}
	}
}

// result is what a member committed to: the right result, as the traces of its share have it, and
// of member liar the wrong one.
func (w *world) result(v dispute.Check, lie bool) (dispute.Signed, []check.Trace) {
	all := check.Traces(dispute.Case{Commitment: dispute.Commitment{
		Run: w.state().ID(), Epoch: v.Epoch, Round: v.Round, Member: v.Member, Share: v.Share, Params: v.Params,
	}, Step: v.Step, Sequences: v.Sequences})
	c := all[0].Result
	if lie {
		c = all[1].Result
	}
	return c.Sign(w.keys[v.Member]), all
}

// verdicts passes a result, says that another was not served, and convicts a member of two
// commitments.
func (w *world) verdicts() {
	list := w.state().Checks()
	if len(list) < 4 {
		w.fail("%d checks are drawn", len(list))
		return
	}
	first, last := list[0], list[len(list)-1]
	signed, all := w.result(first, false)
	w.say(first.Verifier, coordinator.Pass{Round: first.Round, Member: first.Member, Commitment: signed, Gradient: check.Gradient(all[0].Value)})
	w.say(last.Verifier, coordinator.Unserved{Round: last.Round, Member: last.Member})
	d := w.state().Disputes()[0]
	for _, v := range d.TieBreakers {
		w.say(v.Member, coordinator.TieBreak{Dispute: d.ID, Vote: dispute.VoteUnserved})
	}
	one, two := first, first
	one.Share, two.Share = hash("one"), hash("two")
	a, _ := w.result(one, false)
	b, _ := w.result(two, false)
	w.say(0, coordinator.Equivocation{A: a, B: b})
}

// dispute plays a dispute to its end, and gives up another.
func (w *world) dispute() {
	d, traces := w.accuse()
	w.descend(d, traces)
	w.say(d.Accuser, coordinator.Evidence{Dispute: d.ID, Bytes: traces[0].Evidence()})
	d, _ = w.accuse()
	w.say(d.Accuser, coordinator.Concede{Dispute: d.ID})
}

// accuse has the verifier of the first check accuse, and the tie-breakers agree. It returns the
// dispute and the traces of the share, the right one first.
func (w *world) accuse() (dispute.Dispute, []check.Trace) {
	list := w.state().Checks()
	i := slices.IndexFunc(list, func(v dispute.Check) bool { return !v.Disputed })
	if i < 0 {
		w.fail("no check is left for a dispute")
	}
	v := list[i]
	signed, all := w.result(v, true)
	w.say(v.Verifier, coordinator.Accuse{Round: v.Round, Member: v.Member, Commitment: signed, Trace: dispute.Blind(w.state().Key(v.Verifier), all[0].Root())})
	at := slices.IndexFunc(w.state().Disputes(), func(d dispute.Dispute) bool { return d.Member == v.Member })
	if at < 0 {
		w.fail("no dispute is open")
	}
	d := w.state().Disputes()[at]
	for _, t := range d.TieBreakers {
		w.say(t.Member, coordinator.TieBreak{Dispute: d.ID, Vote: dispute.VoteWrong, Trace: dispute.Blind(w.state().Key(t.Member), all[0].Root())})
	}
	return d, all
}

// descend plays a dispute to the slice that the accuser has to open.
func (w *world) descend(d dispute.Dispute, traces []check.Trace) {
	truth, lie := traces[0], traces[1]
	w.say(d.Accused, coordinator.Defend{Dispute: d.ID, Trace: lie.Root(), Proof: bisect.Prove(lie.Leaves, uint32(len(lie.Leaves)-1))})
	w.say(d.Accused, coordinator.Reveal{Dispute: d.ID, Nodes: bisect.Children(lie.Leaves, 1, 0)})
	w.say(d.Accuser, coordinator.Reveal{Dispute: d.ID, Nodes: bisect.Children(truth.Leaves, 1, 0)})
}

// buckets plays a run by buckets, with validators, to the settlement of its first period.
func (w *world) buckets() {
	l, c := w.config()
	l.Buckets, c.Exchange, c.WindowBlocks, c.Overlap = true, coordinator.Buckets, 40, 1
	l.Validators, c.Validators, c.ScoreWindows, c.Emission, c.EpochMs = 4, 4, 2, 1<<30, day
	w.found(l, c)
	w.sample(w.keys[0], bring(1<<40, coordinator.RegisterValidator{}))
	w.sample(w.keys[1], bring(1<<40, coordinator.RegisterValidator{}))
	for w.state().Round() < 8 {
		w.window()
	}
	w.sample(w.keys[1], host.ToRun(runName, coordinator.RetireValidator{}))
}

// window commits to all results of a window, reports, scores, and waits for its end.
func (w *world) window() {
	s := w.state()
	number := s.Round()
	r, _ := s.At(number)
	commit := func(i int) coordinator.Message {
		return coordinator.Commit{Signed: dispute.Commitment{
			Run: s.ID(), Epoch: r.Epoch(), Round: number, Member: coordinator.Member(i), Share: batch.Hash(r.Share(coordinator.Member(i))),
			PayloadBytes: 1, Payload: hash("payload"),
		}.Sign(w.keys[i])}
	}
	if number == 1 {
		w.say(0, commit(0))
		w.say(coordinator.Member(w.n-1), commit(w.n-1))
		w.all(w.keys[1:w.n-1], func(i int) coordinator.Message { return commit(i + 1) })
	} else {
		w.all(w.keys, commit)
	}
	w.report(number == 2)
	if period, stage := s.Scoring(); period > 0 && number < 8 {
		w.score(period, stage)
	}
	for left := 0; w.state().Round() == number && left < 80; left++ {
		w.block(0)
	}
}

// score has the two validators score a period: with the window's stage, commit to scores for all
// members or reveal them.
func (w *world) score(period uint32, stage score.Stage) {
	m := coordinator.RevealScores{Period: period, Salt: hash("salt")}
	for i := range w.state().Count() {
		m.Scores = append(m.Scores, score.Score{Member: i, Value: 1000})
	}
	for _, k := range w.keys[:2] {
		switch {
		case !w.state().MayScore(k.Public(), period):
		case stage == score.StageCommit:
			w.sample(k, host.ToRun(runName, coordinator.CommitScores{Period: period, Hash: coordinator.ScoresHash(w.state().ID(), k.Public(), m)}))
		case stage == score.StageReveal:
			w.sample(k, host.ToRun(runName, m))
		}
	}
}

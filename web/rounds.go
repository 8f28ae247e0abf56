package web

import (
	"math/bits"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/wire"
)

// roundRow is a round in the table of rounds.
type roundRow struct {
	Number   uint32 `json:"number"`
	Epoch    uint32 `json:"epoch"`
	Step     uint32 `json:"step"`
	OpenedMs uint64 `json:"opened_ms"`
	EndMs    uint64 `json:"end_ms"` // 0: it runs, or nobody saw its end
	Active   uint32 `json:"active"`
	Expected uint32 `json:"expected"`
	Accepted uint32 `json:"accepted"`
	Batch    uint32 `json:"batch"`
	Seats    uint16 `json:"seats"`
	Reports  uint16 `json:"reports"`
	Quorum   uint16 `json:"quorum"`
	Final    bool   `json:"final"`
	Seed     string `json:"seed"`
	Agreed   string `json:"agreed"` // hash of the parameters at its start, "" if there was no agreement
}

func (r *roundRecord) row() roundRow {
	row := roundRow{
		Number: r.number, Epoch: r.epoch, Step: r.step, OpenedMs: r.openedMs, EndMs: r.endMs, Active: r.active, Expected: r.expected,
		Accepted: r.accepted, Batch: r.batch, Seats: r.seats, Reports: r.reports, Quorum: r.quorum, Final: r.final, Seed: r.seed.String(),
	}
	if r.agreed {
		row.Agreed = r.params.String()
	}
	return row
}

// roundPage is a part of the table of rounds, newest first.
type roundPage struct {
	Version string     `json:"version"`
	Total   int        `json:"total"`
	From    int        `json:"from"`
	Rows    []roundRow `json:"rows"`
}

func (d *desk) roundPage(boot string, from, n int, now time.Time) roundPage {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refresh(now)
	all := d.past.rounds
	p := roundPage{Version: versionText(boot, d.version), Total: len(all), From: min(max(from, 0), len(all)), Rows: []roundRow{}}
	for i := p.From; i < min(p.From+min(max(n, 0), pageMax), len(all)); i++ {
		p.Rows = append(p.Rows, all[len(all)-1-i].row())
	}
	return p
}

// roundDetails is all that is known of a round.
type roundDetails struct {
	Version   string        `json:"version"`
	Round     roundRow      `json:"round"`
	Detailed  bool          `json:"detailed"` // what follows is known
	Attests   uint32        `json:"attests"`
	WitnessMs uint64        `json:"witness_ms"`
	Witnesses []witnessLine `json:"witnesses"`
	Results   []resultLine  `json:"results"` // of those with a share, a part
	From      int           `json:"from"`
	Total     int           `json:"total"`
	Next      bool          `json:"next"` // the next round is known
	Previous  bool          `json:"previous"`
	Audit     string        `json:"audit"` // the command that computes the round again
}

// witnessLine is a seat of a round.
type witnessLine struct {
	Member   uint32 `json:"member"`
	Key      string `json:"key"`
	Reported bool   `json:"reported"`
	Complete bool   `json:"complete"`
	Ms       uint64 `json:"ms"`
	Params   string `json:"params"`
}

// resultLine is what came of a member's share.
type resultLine struct {
	Member     uint32 `json:"member"`
	Key        string `json:"key"`
	Sequences  uint64 `json:"sequences"`
	Holders    int    `json:"holders"` // -1: not known
	Accepted   bool   `json:"accepted"`
	Commitment string `json:"commitment"` // its ID, "" if the participant whose log is read did not see it
	Check      string `json:"check"`      // of its check: open, disputed, right, convicted or ""
}

// round returns what is known of a round, with some of its results.
func (d *desk) round(boot string, number uint32, from, n int, now time.Time) (roundDetails, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refresh(now)
	at, ok := d.past.find(number)
	if !ok {
		return roundDetails{}, false
	}
	rec := d.past.rounds[at]
	r := roundDetails{
		Version: versionText(boot, d.version), Round: rec.row(), WitnessMs: rec.witnessMs, Witnesses: []witnessLine{}, Results: []resultLine{},
		Previous: at > 0, Next: at+1 < len(d.past.rounds), Total: int(rec.expected),
	}
	detail := d.past.detail(number)
	if detail == nil {
		return r, true
	}
	r.Detailed, r.Attests = true, detail.attests
	for _, w := range detail.witnesses {
		r.Witnesses = append(r.Witnesses, witnessLine{w.member, d.past.keyOf(detail, w.member), w.reported, w.complete, w.reportedMs, w.params})
	}
	r.From = min(max(from, 0), r.Total)
	to := r.From + min(max(n, 0), pageMax)
	seen := 0
	for i := uint32(0); i < uint32(8*len(detail.expected)) && seen < to; i++ {
		if !detail.expected.Has(i) {
			continue
		}
		if seen >= r.From {
			line := resultLine{Member: i, Key: d.past.keyOf(detail, i), Sequences: detail.sequences(rec, i), Holders: -1, Accepted: detail.accepted.Has(i)}
			if int(i) < len(detail.holders) {
				line.Holders = int(detail.holders[i])
			}
			line.Check, line.Commitment = d.checkOf(number, i), detail.commitments[i]
			r.Results = append(r.Results, line)
		}
		seen++
	}
	return r, true
}

// sequences returns how many sequences the share of an active member had: what the log tells, or
// where shares are equal as coordinator.Round.Share, from what is kept of the round.
func (d *roundDetail) sequences(rec roundRecord, i uint32) uint64 {
	if rec.active == 0 || !d.expected.Has(i) {
		return 0
	}
	if n := rankIn(d.expected, i); len(d.shares) > 0 {
		if n >= len(d.shares) {
			return 0
		}
		return uint64(d.shares[n])
	}
	position := committee.Position(rec.seed, committee.Trainers, rec.active, uint32(rankIn(d.active, i)))
	_, n := batch.Split(rec.batch, rec.active, position)
	return uint64(n)
}

// rankIn returns how many of a set come before member i, which is in it.
func rankIn(set runlog.Set, i uint32) int {
	rank := bits.OnesCount8(set[i>>3] & (1<<(i&7) - 1))
	for _, b := range set[:i>>3] {
		rank += bits.OnesCount8(b)
	}
	return rank
}

// joining is what somebody needs to know to take part.
type joining struct {
	Run       string   `json:"run"`
	Chain     string   `json:"chain"`
	Endpoints []string `json:"endpoints"`
	Target    string   `json:"target"` // the run and where its chain is, as commands take it
	Ticket    string   `json:"ticket"` // "" if there is none
	Preset    string   `json:"preset"`
	Params    int      `json:"params"`   // numbers in the model
	Sequence  int      `json:"sequence"` // tokens
	Manifest  string   `json:"manifest"` // of the data
	Location  string   `json:"location"` // of the data, on the owner's machine
	Capacity  uint32   `json:"capacity"`
	Present   uint32   `json:"present"`
	Phase     string   `json:"phase"`
	Spec      string   `json:"spec"` // the specification's text
	SpecHash  string   `json:"spec_hash"`
	ModelHash string   `json:"model_hash"`
	Owner     string   `json:"owner"`
	RoundMs   uint64   `json:"round_ms"` // longest RoundTrain
	Batch     uint32   `json:"batch"`    // sequences in a step, at the end
}

// joining tells what the run is. It returns false while that is not known.
func (d *desk) joining(chain string, endpoints []string, now time.Time) (joining, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refresh(now)
	if d.spec == nil || d.state == nil {
		return joining{}, false
	}
	c := d.state.Config()
	j := joining{
		Run: c.Name, Chain: chain, Endpoints: endpoints, Target: commandTarget(c.Name, endpoints), Preset: d.spec.Model.Name(), Sequence: d.spec.Data.Sequence,
		Manifest: d.spec.Data.Manifest, Location: d.spec.Data.Location, Capacity: d.state.Limits().Members, Present: d.state.Present(),
		Phase: d.state.Phase().String(), Spec: string(d.text), SpecHash: host.SpecHash(d.text).String(), ModelHash: c.ModelHash.String(),
		Owner: key.Public(c.Owner).String(), RoundMs: c.RoundTrainMs, Batch: c.BatchEnd,
	}
	if m, err := d.spec.Llama(); err == nil {
		j.Params = m.Layout().Len()
	}
	if manifest, err := wire.ParseHash(j.Manifest); err == nil {
		address := j.Location
		if !data.IsURL(address) {
			address = ""
		}
		if t, err := onchain.NewTicket(chain, c.Name, d.state.ID(), manifest, address, endpoints); err == nil {
			j.Ticket = t.String()
		}
	}
	return j, true
}

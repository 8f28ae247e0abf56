package report

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"slices"
	"strconv"
	"time"

	"github.com/entrain-network/entrain/view"
)

// table returns lines as CSV.
func table(head []string, lines [][]string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := cmp.Or(w.Write(head), w.WriteAll(lines)); err != nil {
		panic("report: CSV into memory: " + err.Error())
	}
	return b.Bytes()
}

func whole[T ~uint8 | ~uint16 | ~uint32 | ~uint64](n T) string {
	return strconv.FormatUint(uint64(n), 10)
}

func real(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// stamp returns a ledger time in RFC 3339, "" for none.
func stamp(ms uint64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(int64(ms)).UTC().Format("2006-01-02T15:04:05.000Z")
}

func curvesCSV(r view.Run) []byte {
	var lines [][]string
	curves := []Line{
		{Name: "train/loss", Curve: r.Loss}, {Name: "eval/loss", Curve: r.HeldOut}, {Name: "perf/tokens_per_sec", Curve: r.Speed},
		{Name: "train/lr", Curve: r.LR}, {Name: "train/grad_norm", Curve: r.GradNorm}, {Name: "net/payload_bytes", Curve: r.Payloads},
	}
	for _, t := range r.Tasks {
		curves = append(curves, Line{Name: "eval/" + t.Name + "/acc", Curve: t.Acc}, Line{Name: "eval/" + t.Name + "/acc_norm", Curve: t.Norm})
	}
	for _, c := range curves {
		for _, b := range c.Curve {
			lines = append(lines, []string{c.Name, whole(b.From), whole(b.To), whole(b.Tokens), real(b.Mean), real(b.Min), real(b.Max), whole(b.Count)})
		}
	}
	return table([]string{"curve", "step_from", "step_to", "tokens", "mean", "min", "max", "values"}, lines)
}

func membersCSV(r view.Run) []byte {
	var lines [][]string
	for i, m := range r.Ranked() {
		lines = append(lines, []string{strconv.Itoa(i + 1), whole(m.Index), m.Key, m.Status, whole(m.Points), real(m.Share), whole(m.Results), whole(m.Missed), stamp(m.JoinedMs),
			whole(m.Stake), whole(m.Balance), whole(m.Settled), whole(m.Claimed), whole(m.Doubt), whole(m.Passed), scoreText(m.Scored, m.Score), whole(m.Earned), whole(m.Unvested), m.Name, m.Team})
	}
	return table([]string{"rank", "index", "key", "status", "points", "share", "results", "missed", "joined", "stake", "balance", "settled", "claimed", "doubt", "passed",
		"score", "earned", "unvested", "name", "team"}, lines)
}

// convictionsCSV lists the convictions, oldest first.
func convictionsCSV(r view.Run) []byte {
	var lines [][]string
	for _, c := range slices.Backward(r.Trust.Convictions) {
		lines = append(lines, []string{whole(c.Number), whole(c.Round), whole(c.Member), c.Key, c.Offence, c.ByKey, whole(c.Slashed), c.Evidence,
			whole(c.FirstRound), whole(c.LastRound), whole(c.Results), stamp(c.AtMs)})
	}
	return table([]string{"number", "round", "member", "key", "offence", "by", "slashed", "evidence", "first_round", "last_round", "results", "at"}, lines)
}

// scoreText returns a score, "" if there is none.
func scoreText(is bool, v float64) string {
	if !is {
		return ""
	}
	return real(v)
}

// validatorsCSV lists the validators.
func validatorsCSV(w *view.Windows) []byte {
	var lines [][]string
	for _, v := range w.Validators {
		lines = append(lines, []string{whole(v.Seat), v.Key, v.Payee, whole(v.Stake), whole(v.Balance), whole(v.Earned), whole(v.Trust), whole(v.Since)})
	}
	return table([]string{"seat", "key", "payee", "stake", "balance", "earned", "trust", "since_window"}, lines)
}

// scoresCSV lists the scores of a settled period: a line for each member with the agreed score, and
// a line for each score that a validator gave.
func scoresCSV(p *view.Period) []byte {
	var lines [][]string
	for _, m := range p.Members {
		lines = append(lines, []string{whole(p.Number), whole(m.Member), m.Key, "", scoreText(m.Scored, m.Score), real(m.Weight), whole(m.Reward), whole(m.Penalty), whole(m.Sequences)})
	}
	for _, v := range p.Validators {
		for _, s := range v.Said {
			lines = append(lines, []string{whole(p.Number), whole(s.Member), "", v.Key, real(s.Score), "", "", "", ""})
		}
	}
	return table([]string{"period", "member", "key", "validator", "score", "weight", "reward", "penalty", "sequences"}, lines)
}

func roundsCSV(r view.Run) []byte {
	var lines [][]string
	for _, x := range r.Rounds {
		seconds := ""
		if x.ClosedMs > x.OpenedMs {
			seconds = real(float64(x.ClosedMs-x.OpenedMs) / 1000)
		}
		lines = append(lines, []string{whole(x.Number), whole(x.Epoch), whole(x.Step), stamp(x.OpenedMs), seconds, whole(x.Batch), whole(x.Active), whole(x.Expected),
			whole(x.Accepted), x.Agreed, x.Seed, whole(x.Checked), whole(x.Verified), whole(x.Convicted), whole(x.OnChain)})
	}
	return table([]string{"number", "epoch", "step", "opened", "seconds", "batch", "active", "expected", "accepted", "agreed", "seed", "checked", "verified", "convicted", "on_chain"}, lines)
}

package solana

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// DisputeMsMin is the least time for a move in a dispute on Solana, in milliseconds. The last move
// is evidence: up to 940 transactions that write it, 16 at a time, then up to 17 that judge it, one
// after another. That is two minutes and a half at 2 s each. An accuser that is late loses.
const DisputeMsMin = 300_000

// rulesAt returns where the rules of a run are: a buffer of its owner's, which the specification
// names.
func (c *Client) rulesAt(config coordinator.Config) solana.Address {
	if config.VerificationPercent == 0 {
		return solana.Address{}
	}
	return c.program.BufferAt(solana.Address(config.Owner), rulesLabel(config.SpecHash))
}

func rulesLabel(spec wire.Hash) string { return "rules-" + hex.EncodeToString(spec[:])[:26] }

// rulesFor returns the account of the rules that each message to a run must name; zero for a run
// that does not verify results.
func (a *acting) rulesFor(ctx context.Context, name string, run solana.Address) (solana.Address, error) {
	if at, ok := a.ruled.Load(run); ok {
		return at.(solana.Address), nil
	}
	s, data, err := a.read(ctx, run)
	if errors.Is(err, ledger.ErrUnknownRun) || err == nil && another(data, name) {
		err = refuse(host.CodeUnknownRun, name+" was closed")
	}
	if err != nil {
		return solana.Address{}, err
	}
	at := a.rulesAt(s.State.Config())
	a.ruled.Store(run, at)
	return at, nil
}

// checkRules reports an error unless the program judges a run's disputes by its specification.
func (c *Client) checkRules(ctx context.Context, run solana.Address, account, spec []byte) error {
	s, err := coordinator.Open(solana.State(account))
	if err != nil || s.Config().VerificationPercent == 0 || c.rules == nil {
		return nil // an unsound state is for read to report
	}
	want, err := c.rules(spec)
	if err != nil {
		return err
	}
	_, list, err := c.accounts(ctx, nil, c.rulesAt(s.Config()))
	if err != nil {
		return err
	}
	if list[0] != nil && list[0].Owner == solana.Address(c.program) {
		if of, rules, ok := solana.RulesOf(list[0].Data); ok && of == run && bytes.Equal(rules, want) {
			return nil
		}
	}
	return errors.New("the chain does not judge this run's disputes by its specification, so its owner can convict you: do not join it")
}

// writeRules publishes the rules of a run that is to be made.
func (a *acting) writeRules(ctx context.Context, b host.CreateRun) (solana.Address, error) {
	if a.rules == nil {
		return solana.Address{}, refuse(host.CodeNoReferee, "")
	}
	rules, err := a.rules(b.Spec)
	if err != nil {
		return solana.Address{}, refuse(host.CodeNoReferee, err.Error())
	}
	if b.Config.DisputeMs < DisputeMsMin {
		return solana.Address{}, refuse(host.CodeBadConfig, fmt.Sprintf("trust.dispute is %d s; to send evidence and have it judged on Solana takes up to %d s",
			b.Config.DisputeMs/1000, DisputeMsMin/1000))
	}
	return a.write(ctx, rulesLabel(b.Config.SpecHash), rules, len(rules))
}

// judge has the program compute the judgement that evidence in a buffer asks for, as far as that
// does not fit the transaction of the evidence, and returns what closes the account for it.
func (a *acting) judge(ctx context.Context, s *solana.Sending, label string) ([]solana.Instruction, error) {
	fits := func() bool {
		apply, err := a.program.Apply(*s)
		if err == nil {
			_, err = a.simulate(ctx, []solana.Signer{a.signer}, []solana.Instruction{apply})
		}
		return err == nil
	}
	if fits() {
		return nil, nil
	}
	own := a.signer.Address()
	rent, err := a.rent(ctx, solana.WorkBytes)
	if err != nil {
		return nil, err
	}
	s.Work = a.program.BufferAt(own, label)
	_, accounts, err := a.accounts(ctx, nil, s.Work)
	if err != nil {
		return nil, err
	}
	var list []solana.Instruction
	if absent(accounts[0]) {
		list = a.program.NewWork(own, label, rent)
	}
	closing := []solana.Instruction{a.program.Close(s.Work, own)}
	a.log.Debug("evidence is judged in parts", "run", s.Run)
	results, done := uint32(judgedAtOnce), uint32(0)
	for {
		judge := append(slices.Clone(list), a.program.Judge(*s, results))
		switch err := a.insist(ctx, func() error { return a.send(ctx, judge) }); {
		case err == nil:
		case results > 1 && !isRefusal(err):
			results /= 2 // they take more units than a transaction has
			continue
		default:
			return nil, err
		}
		list = nil
		_, accounts, err := a.accounts(ctx, nil, s.Work)
		if err != nil {
			return nil, err
		}
		if accounts[0] == nil || solana.Worked(accounts[0].Data) == done {
			return closing, nil // all is computed
		}
		done = solana.Worked(accounts[0].Data)
	}
}

// affords refuses a message that accuses, or may make its sender the accuser, unless the key has
// the SOL to prove it: it would lose by its silence.
func (a *acting) affords(ctx context.Context, m coordinator.Message) error {
	vote, votes := m.(coordinator.TieBreak)
	if _, accuses := m.(coordinator.Accuse); !accuses && (!votes || vote.Vote != dispute.VoteWrong) {
		return nil
	}
	_, list, err := a.accounts(ctx, nil, a.signer.Address())
	if err != nil {
		return err
	}
	if list[0] == nil || list[0].Lamports < solana.AccuserLamports {
		return refuse(host.CodeFunds, fmt.Sprintf("to prove an accusation takes up to %.1f SOL, which come back: send some to %v", solana.AccuserLamports/1e9, a.signer.Address()))
	}
	return nil
}

// judgedAtOnce is how many results of a judgement a transaction is first tried with.
const judgedAtOnce = 16

// isRefusal reports whether the program or the coordinator gave a reason of its own.
func isRefusal(err error) bool {
	var refused *host.TxError
	return errors.As(err, &refused)
}

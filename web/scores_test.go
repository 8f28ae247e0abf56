package web

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tests/browser"
	"github.com/entrain-network/entrain/wire"
)

// scoring makes a run in which two validators score, in periods of two rounds.
func scoring(s *spec.Spec) {
	s.Scores = spec.Scores{Validators: 2, Windows: 2, Emission: 1000, ValidatorPercent: 10}
}

func validatorKey(k uint32) key.Public {
	return key.FromSeed(wire.Sum("test/validator", wire.AppendU32(nil, k))).Public()
}

// give applies a message with tokens.
func (s *stage) give(sender key.Public, tokens uint64, m coordinator.Message) {
	s.t.Helper()
	env := s.env(sender)
	env.Value = tokens
	if err := s.state.Apply(env, m); err != nil {
		s.t.Fatalf("%T: %v", m, err)
	}
}

// scorePeriods lets two validators score all members but the last well, and the last badly, until a
// period is settled.
func (s *stage) scorePeriods() {
	s.t.Helper()
	s.give(validatorKey(9), 100_000, coordinator.Fund{})
	for k := range uint32(2) {
		s.give(validatorKey(k), 500, coordinator.RegisterValidator{Payee: validatorKey(k)})
	}
	said := func(period uint32) coordinator.RevealScores {
		m := coordinator.RevealScores{Period: period}
		for i := range s.state.Count() {
			value := int16(score.One / 2)
			if i == s.state.Count()-1 {
				value = -score.One / 4
			}
			m.Scores = append(m.Scores, score.Score{Member: i, Value: value})
		}
		return m
	}
	for range 12 {
		s.round()
		period, stage := s.state.Scoring()
		for k := range uint32(2) {
			switch stage {
			case score.StageCommit:
				s.apply(validatorKey(k), coordinator.CommitScores{Period: period, Hash: coordinator.ScoresHash(s.state.ID(), validatorKey(k), said(period))})
			case score.StageReveal:
				s.apply(validatorKey(k), said(period))
			}
		}
		s.tell()
		if last, ok := s.state.LastScores(); ok && last.Settled {
			return
		}
	}
	s.t.Fatal("no period is settled")
}

func TestScoresAreShown(t *testing.T) {
	t.Parallel()
	b := browser.Open(t)
	s := newStage(t, 4, scoring)
	url, _ := serve(t, s.options(), "")
	get(t, url+api, nil)
	b.Size(1280, 900)
	b.Go(url + "/runs/" + stageRun + "/scores")
	b.Wait(`document.querySelector("main").innerText.includes("No validators yet")`)
	s.scorePeriods()
	until(t, func() bool {
		var p scoresPage
		get(t, url+api+"/scores", &p)
		return p.Period != nil && p.Members == 4 && len(p.Validators) == 2 && p.Rows[0].Reward > 0 && len(p.Rows[0].Said) == 2 && p.Rows[3].Score < 0
	})
	b.Wait(`document.querySelectorAll('section[aria-labelledby="h-the-last-period"] tbody tr').length === 4`)
	for _, want := range []string{"+0.50", "−0.25", "0: +0.50, 1: +0.50", "agreed to", "of 255"} {
		if text := browser.Value[string](b, `document.querySelector("main").innerText`); !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	b.Wait(`[...document.querySelectorAll("nav.tabs a")].some((a) => a.textContent === "Scores" && !a.hidden)`)
	b.Keep("scores")
	b.Go(url + "/runs/" + stageRun + "/members/" + memberKey(3).String())
	b.Wait(`document.querySelector("main").innerText.includes("validators said −0.25, −0.25")`)
	b.Keep("scores-member")
	b.Quiet("scores")
	for _, fault := range browser.Value[[]string](b, audit) {
		t.Error(fault)
	}

	// A run in which nobody scores has no such tab, and says so on the page.
	other, _ := serve(t, newStage(t, 2).options(), "")
	get(t, other+api, nil)
	b.Go(other + "/runs/" + stageRun)
	b.Wait(`document.querySelector(".tiles b") !== null`)
	if !browser.Value[bool](b, `[...document.querySelectorAll("nav.tabs a")].find((a) => a.textContent === "Scores").hidden`) {
		t.Error("a run without scores has a tab of them")
	}
	b.Go(other + "/runs/" + stageRun + "/scores")
	b.Wait(`document.querySelector("main").innerText.includes("This run has no validators")`)
}

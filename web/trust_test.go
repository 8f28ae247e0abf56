package web

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tests/browser"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// distrusting makes a run in which every result is checked.
func distrusting(s *spec.Spec) {
	s.Trust.VerificationPercent, s.Trust.Verify, s.Trust.Dispute = 100, spec.Duration(10*time.Hour), spec.Duration(time.Minute)
	s.Trust.Unbond, s.Trust.Rate = spec.Duration(10*time.Hour), 3
}

// mute is a referee of steps of one operation, who judges nothing.
type mute struct{}

var errMute = errors.New("nothing to say")

func (mute) Ops(uint32) uint32                          { return 16 }
func (mute) Tiles(dispute.Case, uint32) uint32          { return 1 }
func (mute) Slices(dispute.Case, uint32, uint32) uint32 { return 1 }
func (mute) Judge(dispute.Case, uint32, uint32, uint32, wire.Hash, []byte) (wire.Hash, error) {
	return wire.Hash{}, errMute
}

// committed is what a member may have committed to, as far as the chain can tell.
func (s *stage) committed(c dispute.Check, gradient wire.Hash) dispute.Signed {
	return dispute.Commitment{
		Run: s.state.ID(), Epoch: c.Epoch, Round: c.Round, Member: c.Member, Share: c.Share, Params: c.Params, PayloadBytes: 60_000,
		Payload: wire.Sum("test/payload", gradient[:]), Prev: wire.Sum("test/prev"), State: wire.Sum("test/state", gradient[:]),
		Work: dispute.WorkHash(s.state.ID(), c.Round, c.Member, gradient),
	}.Sign(memberSecret(uint32(c.Member)))
}

// witness is a member who may show what another one signed twice.
func witness(of uint32) uint32 { return 1 + of%2 }

// trials lets a result pass its check, a member sign two commitments, and another one be accused
// and stay silent.
func (s *stage) trials() {
	s.t.Helper()
	s.judge = mute{}
	checks := s.state.Checks()
	if len(checks) < 3 {
		s.t.Fatalf("%d checks are open", len(checks))
	}
	// Neither the silent member nor member 0, which keeps the log, is convicted.
	of := func(bad ...uint32) dispute.Check {
		s.t.Helper()
		i := slices.IndexFunc(s.state.Checks(), func(c dispute.Check) bool {
			return !slices.Contains(bad, uint32(c.Member)) && !slices.Contains(bad, uint32(c.Verifier))
		})
		if i < 0 {
			s.t.Fatal("no check is as wanted")
		}
		return s.state.Checks()[i]
	}
	passes := of(0, 4)
	gradient := wire.Sum("test/gradient")
	s.apply(s.state.Key(passes.Verifier), coordinator.Pass{Round: passes.Round, Member: passes.Member, Commitment: s.committed(passes, gradient), Gradient: gradient})
	s.tell()
	double := of(0, 4, uint32(passes.Member))
	s.apply(memberKey(witness(uint32(double.Member))), coordinator.Equivocation{A: s.committed(double, wire.Sum("test/one")), B: s.committed(double, wire.Sum("test/other"))})
	s.tell()
	accused := of(0, 4, uint32(passes.Member), uint32(double.Member))
	s.apply(s.state.Key(accused.Verifier), coordinator.Accuse{Round: accused.Round, Member: accused.Member, Commitment: s.committed(accused, gradient), Trace: wire.Sum("test/trace")})
	s.tell()
	for _, v := range s.state.Disputes()[0].TieBreakers {
		s.apply(s.state.Key(v.Member), coordinator.TieBreak{Dispute: 1, Vote: dispute.VoteWrong, Trace: wire.Sum("test/trace")})
		s.tell()
	}
	s.pass(60_000) // its time to show a trace is over
	s.tell()
	next := of(0, 4, uint32(passes.Member), uint32(double.Member), uint32(accused.Member))
	s.apply(s.state.Key(next.Verifier), coordinator.Accuse{Round: next.Round, Member: next.Member, Commitment: s.committed(next, gradient), Trace: wire.Sum("test/trace")})
	s.tell()
}

func TestTrustIsTold(t *testing.T) {
	s := newStage(t, 9, distrusting)
	url, _ := serve(t, s.options(), "")
	get(t, url+api, nil)
	for range 6 {
		s.round()
	}
	s.trials()
	var p trustPage
	until(t, func() bool {
		p = trustPage{}
		get(t, url+api+"/trust", &p)
		return len(p.Disputes) == 2
	})
	if !p.Known || p.Percent != 100 || p.Convicted != 2 || len(p.Convictions) != 2 || p.Passed != 1 || p.Open != len(s.state.Checks()) {
		t.Fatalf("%+v", p)
	}
	silence, double := p.Convictions[0], p.Convictions[1]
	if silence.Offence != "silence" || double.Offence != "equivocation" || double.Evidence == "" || double.ByKey != memberKey(witness(uint32(double.Member))).String() {
		t.Errorf("convictions %+v", p.Convictions)
	}
	if len(p.Disputes) != 2 || p.Disputes[0].EndedMs != 0 || p.Disputes[1].Conviction != silence.Number || p.Keys[p.Disputes[1].Member] != silence.Key {
		t.Errorf("disputes %+v, keys %v", p.Disputes, p.Keys)
	}
	var m struct {
		Member      struct{ Status string }
		Convictions []view.Conviction
	}
	get(t, url+api+"/members/"+double.Key, &m)
	if len(m.Convictions) != 1 || m.Convictions[0].Number != double.Number || m.Member.Status != "ejected" {
		t.Errorf("the convicted member's page has %+v", m.Convictions)
	}
	var r roundDetails
	get(t, url+api+"/rounds/"+wholeText(uint32(double.Round)), &r)
	i := slices.IndexFunc(r.Results, func(l view.Work) bool { return l.Key == double.Key })
	if want := "entrain audit " + stageRun + "@203.0.113.5:7370 --round " + wholeText(uint32(double.Round)); !strings.HasPrefix(r.Audit, want) || i < 0 || r.Results[i].Check != "convicted" {
		t.Errorf("command %q, want %q; results %+v", r.Audit, want, r.Results)
	}
	var l struct{ Trust *trustBrief }
	get(t, url+api, &l)
	if l.Trust == nil || l.Trust.Disputes != 1 || len(l.Trust.Last) != 2 {
		t.Errorf("the overview has %+v", l.Trust)
	}
}

func wholeText(n uint32) string { return strings.ReplaceAll(view.Thousands(uint64(n)), ",", "") }

func TestAConvictionAppears(t *testing.T) {
	t.Parallel()
	s := newStage(t, 9, distrusting)
	url, _ := serve(t, s.options(), "")
	get(t, url+api, nil)
	for range 6 {
		s.round()
	}
	b := browser.Open(t)
	b.Do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(url+"/runs/"+stageRun+"/trust"))
	b.Wait(`document.querySelector("main").innerText.includes("No convictions.")`)
	s.trials()
	b.Wait(`document.querySelector("main").innerText.includes("equivocation") && document.querySelector("main").innerText.includes("tie-breaking")`)
	b.Wait(`[...document.querySelectorAll(".disputes details")].length === 2 && document.querySelector(".disputes").textContent.includes("the accused is wrong")`)
	b.Do(chromedp.Click(chromedp.CSS(`section[aria-labelledby="h-convictions"] tbody a`)))
	b.Wait(`document.querySelector("main").innerText.includes("Convicted")`)
	b.Do(chromedp.Navigate(url + "/runs/" + stageRun))
	b.Wait(`document.querySelector("main").innerText.includes("2 convictions")`)
	b.Quiet("trust")
}

// A round's page has the commitments that the participant saw, also of those it heard of before the
// chain told of the round.
func TestRoundsHaveTheirCommitments(t *testing.T) {
	s := newStage(t, 3)
	o := s.options()
	o.Node = &Node{Run: stageRun, Log: s.keepLog()}
	url, _ := serve(t, o, "")
	get(t, url+api, nil)
	for range 4 {
		s.round()
	}
	for round := uint32(1); round <= 4; round++ {
		until(t, func() bool {
			var r roundDetails
			get(t, url+api+"/rounds/"+wholeText(round), &r)
			want := wire.Sum("test/commitment", wire.AppendU32(nil, round), wire.AppendU32(nil, 2)).String()
			return len(r.Results) == 3 && r.Results[2].Commitment == want && r.Results[0].Commitment == ""
		})
	}
}

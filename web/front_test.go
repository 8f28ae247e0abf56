package web

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tests/browser"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// twins makes a server show the run of a stage under two names.
func twins(o Options) Options {
	o.Runs = func(context.Context) ([]string, error) { return []string{stageRun, "twin"}, nil }
	return o
}

// TestTheFrontPageSumsUpAllRuns has a member that is convicted: what it did counts no more.
func TestTheFrontPageSumsUpAllRuns(t *testing.T) {
	s := newStage(t, 9, distrusting, func(p *spec.Spec) { p.About = &spec.About{Description: "Newton."} })
	o := twins(s.options())
	o.Names = func(context.Context) ([]host.Profile, error) {
		list := []host.Profile{{Key: key.Public{9}, Name: "nobody"}}
		for i := range uint32(9) {
			list = append(list, host.Profile{Key: memberKey(i), Name: fmt.Sprint("ada-", i), Team: "reds"})
		}
		return list, nil
	}
	url, _ := serve(t, o, "")
	for range 24 {
		s.round()
	}
	s.trials()
	points, convicted := map[string]uint64{}, 0
	for i := range s.state.Count() {
		m := s.state.Member(i)
		if m.Status == coordinator.StatusEjected {
			convicted++
			continue
		}
		points[s.state.Key(i).String()] = m.Points
	}
	if convicted == 0 {
		t.Fatal("nobody was convicted")
	}
	var f front
	for len(f.Runs) < 2 || f.Runs[0].Step != s.state.Step() || f.Runs[1].Step != f.Runs[0].Step {
		get(t, url+"/api/runs", &f)
	}
	if r := f.Runs[0]; r.About == nil || r.About.Description != "Newton." || r.Join != stageRun+"@203.0.113.5:7370 --data ./data" {
		t.Errorf("%+v", r)
	}
	if len(f.Leaders) == 0 || f.Members != len(f.Leaders) {
		t.Fatalf("%d leaders of %d", len(f.Leaders), f.Members)
	}
	for i, l := range f.Leaders {
		if p := points[l.Key]; p == 0 || len(l.Runs) != 2 || l.Nodes != 2 || l.Tokens != 2*p*uint64(f.Runs[0].SeqTokens) {
			t.Errorf("place %d: %+v, with %d points in each run", i+1, l, p)
		}
		if i > 0 && l.Tokens > f.Leaders[i-1].Tokens {
			t.Errorf("place %d has more than the one before", i+1)
		}
	}
	var tokens uint64
	for _, l := range f.Leaders {
		tokens += l.Tokens
	}
	if len(f.Teams) != 1 || f.Teams[0].Team != "reds" || f.Teams[0].Nodes != len(f.Leaders) || f.Teams[0].Tokens != tokens {
		t.Errorf("teams %+v, want one with %d tokens", f.Teams, tokens)
	}
	var called []host.Profile
	if get(t, url+"/api/names", &called); len(called) != 9 {
		t.Errorf("%+v, want the nine members", called)
	}
	var page memberPage
	if get(t, url+api+"/members?find=ada-8", &page); page.Total != 1 || page.Rows[0].Key != memberKey(8).String() || page.Rows[0].Name != "ada-8" {
		t.Errorf("ada-8 is %+v", page)
	}
}

// TestClosedRunsCount has a server that comes when the run is gone from the chain.
func TestClosedRunsCount(t *testing.T) {
	s := newStage(t, 4)
	o := s.options()
	o.Records = filepath.Join(t.TempDir(), "records")
	url, stop := serve(t, o, "")
	for range 6 {
		s.round()
	}
	var before, after front
	for len(before.Runs) == 0 || before.Runs[0].Step != s.state.Step() {
		get(t, url+"/api/runs", &before)
	}
	stop()
	if err := os.WriteFile(filepath.Join(o.Records, "foreign.json"), []byte(`{"id":"x","members":{"a":{"tokens":9}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	o.Runs = func(context.Context) ([]string, error) { return nil, nil }
	url, _ = serve(t, o, "")
	get(t, url+"/api/runs", &after)
	if len(before.Leaders) != 4 || len(after.Leaders) != 4 || len(after.Runs) != 0 || before.Closed != 0 || after.Closed != 1 {
		t.Fatalf("%d leaders with the run, and %d without, of %d closed runs", len(before.Leaders), len(after.Leaders), after.Closed)
	}
	for i, l := range after.Leaders {
		if b := before.Leaders[i]; l.Key != b.Key || l.Tokens != b.Tokens || l.Tokens == 0 || !slices.Equal(l.Runs, []string{stageRun}) || l.Member != "" || b.Member != b.Key || l.Active {
			t.Errorf("place %d: %+v was %+v", i+1, l, b)
		}
	}
}

// In a run that its owner has ended nobody trains, waits, or has more than what is due.
func TestAFinishedRunHasNobodyTraining(t *testing.T) {
	s := newStage(t, 3, func(p *spec.Spec) { p.Trust.Rate = 2 })
	owner := key.Public(wire.Sum("test/owner"))
	env := s.env(owner)
	env.Value = 1_000_000
	if err := s.state.Apply(env, coordinator.Fund{}); err != nil {
		t.Fatal(err)
	}
	url, _ := serve(t, s.options(), "")
	for range 6 {
		s.round()
	}
	leaders := func(phase string) []leader {
		var f front
		for len(f.Runs) == 0 || f.Runs[0].Phase != phase || f.Runs[0].Step != s.state.Step() {
			get(t, url+"/api/runs", &f)
		}
		return f.Leaders
	}
	for _, l := range leaders("RoundTrain") {
		if !l.Active {
			t.Errorf("%+v does not train", l)
		}
	}
	s.apply(owner, coordinator.End{})
	for s.state.Phase() != coordinator.Finished {
		s.pass(s.state.Config().RoundTrainMs)
	}
	s.tell()
	for _, l := range leaders("Finished") {
		if l.Active || l.Tokens == 0 {
			t.Errorf("%+v in a finished run", l)
		}
	}
	b := browser.Open(t)
	b.Go(url + "/runs/" + stageRun + "/members/" + memberKey(1).String())
	b.Wait(`document.querySelector("main").innerText.includes("The run has finished.") && document.querySelector(".facts .chip").textContent === "done"`)
	m := s.state.Member(1)
	b.Wait(fmt.Sprintf(`document.querySelector("main").innerText.includes("0 at stake, %s to claim; %d points settled, 0 of them paid")`, view.Thousands(2*m.Settled), m.Settled))
	b.Quiet("a finished run")
}

func TestASparkKeepsTheLastPoint(t *testing.T) {
	for _, n := range []uint32{0, 1, 59, 60, 61, 500} {
		var c view.Curve
		for i := range n {
			c = append(c, view.Bucket{To: coordinator.Step(i + 1)})
		}
		p := spark(c)
		if len(p) > sparkMax+1 || n > 0 && p[len(p)-1][0] != figure(n) || n == 0 && len(p) > 0 {
			t.Errorf("of %d points %d are left, the last %v", n, len(p), p[max(0, len(p)-1):])
		}
	}
}

func TestCurvesAreLookedAtClosely(t *testing.T) {
	t.Parallel()
	s := newStage(t, 3)
	o := twins(s.options())
	o.Node = &Node{Run: stageRun, Log: s.keepLog()}
	url, _ := serve(t, o, "")
	get(t, url+api, nil)
	for range 30 {
		s.round()
	}
	b := browser.Open(t)
	b.Size(1280, 900)
	b.Go(url + "/runs/" + stageRun)
	const (
		line   = `document.querySelector(".chart .line.c0:not(.raw)")`
		first  = `document.querySelector(".chart .plot svg .tick[text-anchor=middle]").textContent`
		choose = `(() => { const s = [...document.querySelectorAll(".controls select")][%d]; s.value = %q; s.dispatchEvent(new Event("change")); return true; })()`
	)
	b.Wait(line + ` !== null && [...document.querySelectorAll(".controls option")].some((o) => o.value === "twin")`)
	changes := func(what, script string) {
		t.Helper()
		before := browser.Value[string](b, line+`.getAttribute("d")`)
		browser.Value[bool](b, script)
		b.Wait(fmt.Sprintf(`%s.getAttribute("d") !== %q`, line, before))
		if got := browser.Value[string](b, line+`.getAttribute("d")`); got == "" {
			t.Errorf("%s: no line is left", what)
		}
	}
	changes("log loss", fmt.Sprintf(choose, 0, "y"))
	changes("smooth", `(() => { const s = document.querySelector(".controls [type=range]"); s.value = 0.9; s.dispatchEvent(new Event("input")); return true; })()`)
	if !browser.Value[bool](b, `document.querySelector(".chart .line.raw") !== null`) {
		t.Error("the curve as it is does not show through the smoothed one")
	}
	changes("the last half", fmt.Sprintf(choose, 1, "0.5"))
	if browser.Value[string](b, first) == "0" {
		t.Error("half of the curve begins at 0")
	}
	changes("pulled over", `(() => {
		const p = document.querySelector(".plot"), at = p.getBoundingClientRect();
		const to = (type, part, on) => on.dispatchEvent(new PointerEvent(type, { pointerType: "mouse", bubbles: true, clientX: at.left + part * at.width, clientY: at.top + 50 }));
		to("pointerdown", 0.6, p); to("pointermove", 0.8, window); to("pointerup", 0.8, window);
		return document.querySelectorAll(".controls select")[1].value === "own";
	})()`)
	browser.Value[bool](b, fmt.Sprintf(choose, 2, "twin"))
	b.Wait(`document.querySelector(".small-charts .line.c2") !== null && document.querySelector(".small-charts .legend").innerText.includes("twin, accepted")`)
	browser.Value[bool](b, `(document.querySelector(".tiles button.term").click(), true)`)
	b.Wait(`document.querySelector("#why").innerText.startsWith("An update of the model")`)
	b.Quiet("with every control used")
	b.Go(url + "/")
	b.Wait(`document.querySelector(".spark span")?.textContent.startsWith("held-out loss ")`)
	b.Keep("curves-closely")
}

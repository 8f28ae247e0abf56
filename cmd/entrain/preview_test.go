package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/founding"
)

func TestPreview(t *testing.T) {
	s := newShell(t)
	file := writeFile(t, filepath.Join(t.TempDir(), "run.toml"), `
name = "ramp"
steps = 200
[learning_rate]
schedule = "linear"
base = 0.004
warmup = 10
final = 0.001
[batch]
start = 10
end = 30
ramp_tokens = 128000
[members]
min = 5
`)
	p := object[founding.Preview](s, "run", "create", "--dry-run", "-f", file, "--json")
	first, last := p.Steps[0], p.Steps[len(p.Steps)-1]
	if len(p.Steps) != founding.PreviewStepsMax || first.Step != 1 || last.Step != 200 || first.Batch != 10 || last.Batch != 30 || last.Tokens != p.Tokens || first.Tokens != 1280 {
		t.Errorf("%d steps, %+v to %+v", len(p.Steps), first, last)
	}
	if first.Rate != 0.0004 || last.Rate != 0.001 {
		t.Errorf("rates %v to %v", first.Rate, last.Rate)
	}
	for i, step := range p.Steps[1:] {
		if before := p.Steps[i]; step.Step <= before.Step || step.Tokens <= before.Tokens || step.Batch < before.Batch {
			t.Errorf("%+v after %+v", step, before)
		}
	}
	if p.Received != 4*p.Needs.Payload || p.Needs.Model != 4*p.Needs.Parameters || p.Needs.Memory < 3*p.Needs.Model ||
		p.Needs.DeviceMemory <= p.Needs.DeviceLeast || p.Needs.DeviceLeast < 2*p.Needs.Model {
		t.Errorf("%+v", p)
	}
	out := s.ok("run", "create", "--dry-run", "-f", file)
	for _, want := range []string{"200 steps", "learning rate, linear", "0.00", "sequences in a batch", "A member needs about", "bytes a parameter", "the state of a check", "at 100 Mb/s", "of the GPU's memory", "with 5 members", "####"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, steps := range []int{1, 2, 63, 64, 65, 127} {
		file := writeFile(t, filepath.Join(t.TempDir(), "short.toml"), fmt.Sprintf("name = \"short\"\nsteps = %d\n[learning_rate]\nwarmup = 0\n", steps))
		p := object[founding.Preview](s, "run", "create", "--dry-run", "-f", file, "--json")
		if got := p.Steps[len(p.Steps)-1].Step; len(p.Steps) != min(founding.PreviewStepsMax, steps) || int(got) != steps {
			t.Errorf("%d steps: %d shown, the last %d", steps, len(p.Steps), got)
		}
	}
	if a := p.Aggregate; a == nil || a.Members != 256 || a.None != 255*p.Needs.Payload || a.Followers != a.Update+3*32*p.Needs.Payload ||
		a.Chosen != "followers" || !strings.Contains(out, `The run has "followers".`) {
		t.Errorf("%+v, in\n%s", a, out)
	}
	small := writeFile(t, filepath.Join(t.TempDir(), "small.toml"), "name = \"small\"\n[members]\ncapacity = 96\n")
	if p := object[founding.Preview](s, "run", "create", "--dry-run", "-f", small, "--json"); p.Aggregate.Chosen != "none" {
		t.Errorf("of 96 members: %+v", p.Aggregate)
	}
	slices := writeFile(t, filepath.Join(t.TempDir(), "slices.toml"), "name = \"slices\"\n[members]\ncapacity = 2560\noverlap = 1\n[exchange]\naggregate = \"slices\"\n[batch]\nstart = 2560\n")
	p = object[founding.Preview](s, "run", "create", "--dry-run", "-f", slices, "--json")
	// A twentieth of each payload, and what its ends and its proof take.
	if a := p.Aggregate; a.Chosen != "slices" || a.Slices.Ranges != a.None/20 || a.Slices.Proofs > 2559*2000 || p.Links.Downloads[1].Rate() != a.Slices.Received()/120 {
		t.Errorf("in slices: %+v, %+v", a, p.Links)
	}
	if c := p.Aggregate.Choices; len(c) != 4 || c[0].Aggregators != 16 || c[0].Ranges != p.Aggregate.None/160 || c[0].Risks[0].Invented <= c[3].Risks[0].Invented {
		t.Errorf("%+v", c)
	}
	if out := s.ok("run", "create", "--dry-run", "-f", slices); !strings.Contains(out, "invented, 10 %") || !strings.Contains(out, "A witness is shown") {
		t.Errorf("no choices in\n%s", out)
	}
	weak := writeFile(t, filepath.Join(t.TempDir(), "weak.toml"), "name = \"weak\"\n[members]\ncapacity = 2560\noverlap = 1\n[exchange]\naggregate = \"slices\"\naggregators = 20\n")
	if out := s.ok("run", "create", "--dry-run", "-f", weak); !strings.Contains(out, "It would be refused: exchange.aggregators: with 20 members for each slice, 768 of 2560") {
		t.Errorf("nothing about few aggregators in\n%s", out)
	}
	s.fails([]string{"run", "create", "--dry-run"}, "-f FILE")

	large := writeFile(t, filepath.Join(t.TempDir(), "large.toml"), "name = \"large\"\nsteps = 10\n[learning_rate]\nwarmup = 0\n"+
		"[model]\nvocab = 128256\nhidden = 4096\nlayers = 32\nheads = 32\nkv_heads = 8\nhead_dim = 128\nffn = 14336\ncontext = 8192\n[members]\ncapacity = 64\n")
	if out := s.ok("run", "create", "--dry-run", "-f", large); !strings.Contains(out, "8,030,261,248 parameters") ||
		!strings.Contains(out, "Members with a link of 1 Gb/s would be late: raise trust.verify to 4m17s or more.") {
		t.Errorf("of Llama 8B:\n%s", out)
	}

	few := writeFile(t, filepath.Join(t.TempDir(), "few.toml"), "name = \"few\"\nsteps = 1000\n[members]\ncapacity = 64\nwitnesses = 3\n")
	const refusal = "19 of 64 members that collude settle wrong parameters within 1000 rounds with probability 0.4"
	if out := s.ok("run", "create", "--dry-run", "-f", few); !strings.Contains(out, "It would be refused: members.witnesses: with 3 witnesses, "+refusal) {
		t.Errorf("nothing about few witnesses in\n%s", out)
	}
	s.fails([]string{"run", "create", "-f", few}, refusal)
	s.fails([]string{"run", "create", "-f", few, "--few-witnesses"}, "data.manifest")
}

// What a run costs on Solana grows with its members, whose reports then take several transactions.
func TestPreviewOnSolana(t *testing.T) {
	s := newShell(t)
	file := func(members, percent int) string {
		return writeFile(t, filepath.Join(t.TempDir(), "run.toml"), fmt.Sprintf("name = \"fees\"\nsteps = 10\n[learning_rate]\nwarmup = 0\n"+
			"[batch]\nstart = 1000\n[members]\nmin = 1\nstart = %d\ncapacity = %d\n[trust]\nverification_percent = %d\n", members, members, percent))
	}
	const chain = "--chain=solana:https://api.example.org"
	few := object[founding.Preview](s, "run", "create", "--dry-run", "--few-witnesses", "-f", file(4, 0), "--json", chain).Solana
	many := object[founding.Preview](s, "run", "create", "--dry-run", "--few-witnesses", "-f", file(1000, 0), "--json", chain).Solana
	if few.Transactions != 5 || few.Round != 25_000 || many.Transactions != 32*4+1 || many.Rent < 5*few.Rent || many.Priority <= few.Priority {
		t.Errorf("%+v and %+v", few, many)
	}
	if out := s.ok("run", "create", "--dry-run", "-f", file(4, 0), chain); !strings.Contains(out, "5 transactions and 0.000025 SOL") {
		t.Error(out)
	}
	if out := s.ok("run", "create", "--dry-run", "-f", file(4, 5), chain); !strings.Contains(out, "Solana would refuse it") {
		t.Error(out)
	}
	buckets := writeFile(t, filepath.Join(t.TempDir(), "run.toml"), "name = \"fees\"\nsteps = 10\n[learning_rate]\nwarmup = 0\n[exchange]\nkind = \"bucket\"\n"+
		"[trust]\nverification_percent = 5\n")
	if out := s.ok("run", "create", "--dry-run", "-f", buckets, chain); !strings.Contains(out, "needs up to 4.7 SOL to prove it") || !strings.Contains(out, "a window to its bucket") {
		t.Error(out)
	}
	scored := writeFile(t, filepath.Join(t.TempDir(), "run.toml"), "name = \"fees\"\nsteps = 10\n[learning_rate]\nwarmup = 0\n[exchange]\nkind = \"bucket\"\n"+
		"[scores]\nvalidators = 3\nwindows = 2\nemission = 1\n")
	p, q := object[founding.Preview](s, "run", "create", "--dry-run", "-f", buckets, "--json", chain), object[founding.Preview](s, "run", "create", "--dry-run", "-f", scored, "--json", chain)
	if q.Members != p.Members || q.Solana.Transactions != p.Solana.Transactions+3 { // two of each validator in two windows
		t.Errorf("validators' messages: %+v and %+v", p.Solana, q.Solana)
	}
	if p := object[founding.Preview](s, "run", "create", "--dry-run", "-f", file(4, 0), "--json"); p.Solana != nil {
		t.Errorf("fees of another chain: %+v", p.Solana)
	}
}

package spec

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

const small = `
name = "test"
steps = 50

[model]
preset = "nano"
layers = 2
seed = "a"

[data]
sequence = 64
seed = "b"

[learning_rate]
schedule = "wsd"
base = 0.003
warmup = 5
final = 0.0003
`

func TestParseFillsInWhatIsNotSaid(t *testing.T) {
	s, err := Parse([]byte(small), all.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	if s.Model.Layers != 2 || s.Model.Hidden == 0 || s.Model.Theta == 0 {
		t.Errorf("the preset does not show through: %+v", s.Model)
	}
	if s.Batch.End != s.Batch.Start || s.Members.Start != s.Members.Min {
		t.Errorf("batch %+v, members %+v", s.Batch, s.Members)
	}
	if s.LearningRate.Stable != 50-10-5 {
		t.Errorf("wsd is stable for %d steps", s.LearningRate.Stable)
	}
	limits, config := s.Coordinator(key.Public{1}, wire.Hash{2}, wire.Hash{3})
	if faults := config.Check(limits); len(faults) > 0 {
		t.Errorf("the coordinator refuses it: %v", faults)
	}
}

func TestAFewStepsAreASpecification(t *testing.T) {
	for steps, warmup := range map[string]uint32{"steps = 10\n": 1, "steps = 20\n": 20, "": 20} {
		s, err := Parse([]byte("name = \"test\"\n"+steps+"[model]\npreset = \"tiny\"\n"), all.Kinds())
		if err != nil || s.LearningRate.Warmup != warmup {
			t.Errorf("%q: warmup %d, %v", steps, s.LearningRate.Warmup, err)
		}
	}
}

func TestWhatIsWrittenReadsTheSame(t *testing.T) {
	s, err := Parse([]byte(small), all.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(text, all.Kinds())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if again != s {
		t.Errorf("got %+v, want %+v", again, s)
	}
}

func TestEveryFaultIsReportedAtOnce(t *testing.T) {
	_, err := Parse([]byte(`
name = "No Such Name"
steps = 0
[model]
heads = 3
[data]
sequence = 100000
manifest = "xyz"
[optimizer]
codec = "zip"
[learning_rate]
schedule = "up"
[batch]
start = 0
[members]
min = 0
[times]
epoch = "0s"
`), all.Kinds())
	if err == nil {
		t.Fatal("it was accepted")
	}
	for _, want := range []string{"name", "steps", "model", "data.sequence", "data.manifest", "codec", "learning_rate", "batch.start", "members.min", "times.epoch"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not mentioned in:\n%v", want, err)
		}
	}
}

func TestErrorsOfFormNameTheLine(t *testing.T) {
	for name, text := range map[string]string{
		"an unknown key":  "name = \"a\"\n[model]\npreest = \"nano\"\n",
		"a wrong type":    "name = \"a\"\nsteps = \"many\"\n",
		"no toml at all":  "name = \"a\"\n[[[\n",
		"a bad duration":  "name = \"a\"\n[times]\nepoch = \"soon\"\n",
		"half a millisec": "name = \"a\"\n[times]\nepoch = \"1500us\"\n",
	} {
		_, err := Parse([]byte(text), all.Kinds())
		if err == nil {
			t.Errorf("%s is accepted", name)
		} else if !strings.Contains(err.Error(), "2|") && !strings.Contains(err.Error(), "3|") {
			t.Errorf("%s: no line in:\n%v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	if s, err := Continue([]byte("name = \"on\"\n[data]\nsequence = 32\n"), ModelOf(imported, wire.Sum("a"), wire.Sum("b")), all.Kinds()); err == nil {
		text, _ := s.Append(nil)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := Parse(b, all.Kinds()); err == nil {
			text, err := s.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := Parse(text, all.Kinds()); err != nil || again != s {
				t.Fatalf("parses, and what it writes does not read the same: %v", err)
			}
		}
	})
}

func TestTimesOfVerificationFollowFromARound(t *testing.T) {
	for _, c := range []struct {
		text string
		want Trust
	}{
		{"[times]\nround_train = \"2m\"\n[trust]\nverification_percent = 5\n", Trust{
			VerificationPercent: 5, Verify: Duration(4 * time.Minute), Dispute: Duration(12 * time.Minute), Unbond: Duration(200 * time.Minute),
		}},
		{"[times]\nround_train = \"1s\"\n[trust]\nverification_percent = 100\nstake = 7\nrate = 3\n", Trust{
			VerificationPercent: 100, Verify: Duration(30 * time.Second), Dispute: Duration(30 * time.Second), Stake: 7, Unbond: Duration(9 * time.Minute), Rate: 3,
		}},
		{"[trust]\nverification_percent = 1\nverify = \"1m\"\ndispute = \"2s\"\nunbond = \"3h\"\n", Trust{
			VerificationPercent: 1, Verify: Duration(time.Minute), Dispute: Duration(2 * time.Second), Unbond: Duration(3 * time.Hour),
		}},
		{"[trust]\nverification_percent = 0\nrate = 2\n", Trust{Rate: 2}},
	} {
		s, err := Parse([]byte("name = \"test\"\n"+c.text), all.Kinds())
		if err != nil {
			t.Errorf("%v\n%s", err, c.text)
			continue
		}
		if s.Trust != c.want {
			t.Errorf("got %+v, want %+v of\n%s", s.Trust, c.want, c.text)
		}
		limits, config := s.Coordinator(key.Public{1}, wire.Hash{2}, wire.Hash{3})
		if faults := config.Check(limits); len(faults) > 0 {
			t.Errorf("the coordinator refuses it: %v", faults)
		}
		if config.VerificationPercent != c.want.VerificationPercent || config.Stake != c.want.Stake || config.Rate != c.want.Rate ||
			config.VerifyMs != c.want.Verify.ms() || config.DisputeMs != c.want.Dispute.ms() || config.UnbondMs != c.want.Unbond.ms() {
			t.Errorf("the coordinator is told %+v", config)
		}
	}
}

func TestFaultsOfTrust(t *testing.T) {
	for text, want := range map[string]string{
		"verification_percent = 101":                            "trust.verification_percent",
		"verification_percent = 0\nverify = \"1s\"":             "trust.verify",
		"verification_percent = 0\ndispute = \"1s\"":            "trust.dispute",
		"verification_percent = 5\nverify = \"9000h\"":          "trust.verify",
		"verification_percent = 5\nstake = 1\nunbond = \"1s\"":  "trust.unbond",
		"verification_percent = 5\nstake = 9223372036854775807": "trust.stake",
		"verification_percent = 5\nrate = 9223372036854775807":  "trust.rate",
		"verification_percent = 5\nverify = \"-1s\"":            "nonnegative",
		"verification_percent = 256":                            "verification_percent",
		"stake = -1":                                            "stake",
		"rate = 0.5":                                            "rate",
		"bond = 1":                                              "bond",
	} {
		if _, err := Parse([]byte("name = \"test\"\n[trust]\n"+text), all.Kinds()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a fault of %q", text, err, want)
		}
	}
}

func TestStateHashIsThatOfZeros(t *testing.T) {
	for _, size := range []uint64{0, 4, merkle.ChunkBytes - 4, merkle.ChunkBytes, merkle.ChunkBytes + 4, 5 * merkle.ChunkBytes} {
		if got, want := zerosRoot(size), merkle.BlobRoot(make([]byte, size)); got != want {
			t.Errorf("%d bytes: got %v, want %v", size, got, want)
		}
	}
	for codec, more := range map[string]string{
		"distro": "", "slice": "[optimizer.slice]\ncompression = 20\n[exchange]\nkind = \"bucket\"",
		"sparseloco": "[optimizer.sparseloco]\ninner_steps = 4",
	} {
		s, err := Parse([]byte(small+"\n[optimizer]\ncodec = \""+codec+"\"\n"+more+"\n[trust]\nverification_percent = 0\n"), all.Kinds())
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := s.Llama()
		if err != nil {
			t.Fatal(err)
		}
		pool := exact.NewPool(1)
		defer pool.Close()
		c, err := s.Optimizer.New(cfg.Layout(), pool)
		if err != nil {
			t.Fatal(err)
		}
		n := c.StateLen()
		if inner := s.Inner(); inner != nil {
			n += inner.StateLen(cfg.Layout().Len())
		}
		got, err := s.StateHash()
		if want := merkle.BlobRoot(tensor.Bytes(make([]float32, n))); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", codec, got, err, want)
		}
	}
}

func TestRateThatTurnsWeightsAroundIsRefused(t *testing.T) {
	text := "name = \"a\"\n[learning_rate]\nbase = 2.0\n[optimizer.distro]\nweight_decay = 0.6\n"
	if _, err := Parse([]byte(text), all.Kinds()); err == nil || !strings.Contains(err.Error(), "learning_rate, optimizer.distro.weight_decay: learning rate 2 times weight decay 0.6 exceeds 1") {
		t.Errorf("got %v", err)
	}
}

func TestSettingsOfOtherCodecsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"codec = \"distro\"\ninner_steps = 4":                                       "inner_steps = 4",
		"codec = \"sparseloco\"\n[optimizer.distro]\nvotes_max = 4":                 "optimizer.distro: the run's codec is \"sparseloco\"",
		"codec = \"sparseloco\"\n[optimizer.sparseloco]\ninner_steps = -1":          "optimizer.sparseloco.inner_steps is -1, it must be 1 to 1000",
		"codec = \"sparseloco\"\n[optimizer.sparseloco]\ninner_optimizer = \"sgd\"": `optimizer.sparseloco.inner_optimizer is "sgd"`,
		"codec = \"sparseloco\"\n[optimizer.sparseloco]\nouter_rate = 17.0":         "optimizer.sparseloco.outer_rate is 17",
		"codec = \"sparseloco\"\n[trust]\nverification_percent = 5":                 "cannot be disputed",
		"codec = \"distro\"\n[optimizer.distro]\nblock = \"large\"":                 "optimizer.distro.block: want an integer, not a TOML string",
		"codec = \"distro\"\n[optimizer.distro]\nblock = 0":                         "optimizer.distro.block is 0, it must be 1 to 128",
		"[times]\nround_train = \"2h\"":                                             "times.epoch: must be at least times.round_train",
	} {
		if _, err := Parse([]byte(small+"\n[optimizer]\n"+text+"\n"), all.Kinds()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// llama8b is the shape of Llama 3 8B, with any number of layers.
const llama8b = "[model]\nvocab = 128256\nhidden = 4096\nlayers = %d\nheads = 32\nkv_heads = 8\nhead_dim = 128\nffn = 14336\ncontext = 8192\n"

// A run whose model nobody could fetch is refused when it is created, not when the first newcomer
// waits for it.
func TestModelsTooLargeForBucketsAreRefused(t *testing.T) {
	const rest = "[exchange]\nkind = \"bucket\"\nwindow_blocks = 60\n[members]\noverlap = 1\n[optimizer]\ncodec = \"slice\"\n[optimizer.slice]\ncompression = %d\nleaf = 16\n"
	for _, c := range []struct {
		layers, compression int
		want                string
	}{
		{32, 1000, ""},
		{32, 5, "optimizer.slice.compression: a window's slice of the model is an object of "},
		{32, 1, "optimizer.slice.compression: "},
		{400, 1000, "model: its 88295 million parameters are 353.2 GB, and members fetch at most 274.9 GB from buckets"},
	} {
		text := "name = \"large\"\nsteps = 10\n[learning_rate]\nwarmup = 0\n" + fmt.Sprintf(llama8b, c.layers) + fmt.Sprintf(rest, c.compression)
		_, err := Parse([]byte(text), all.Kinds())
		if err == nil != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d layers, compression %d: %v, want %q", c.layers, c.compression, err, c.want)
		}
	}
}

func TestModelsTooLargeForPeersAreRefused(t *testing.T) {
	for _, c := range []struct {
		layers  int
		options string
		want    string
	}{
		{32, "", ""}, // Llama 3 8B
		{400, "", "model: its 88295 million parameters are 353.2 GB, and peers send each other at most 274.9 GB: take a smaller model"},
		{32, "[optimizer]\ncodec = \"sparseloco\"\n[trust]\nverification_percent = 0\n", ""},
	} {
		text := "name = \"large\"\nsteps = 10\n[learning_rate]\nwarmup = 0\n" + fmt.Sprintf(llama8b, c.layers) + c.options
		if _, err := Parse([]byte(text), all.Kinds()); err == nil != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d layers, %q: %v, want %q", c.layers, c.options, err, c.want)
		}
	}
}

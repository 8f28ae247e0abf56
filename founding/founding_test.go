package founding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// says fails the test unless err contains want, or is nil if want is "".
func says(t *testing.T, what string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want %q", what, err, want)
	}
}

func TestPlaces(t *testing.T) {
	one, err := Replica{Home: "home", API: "127.0.0.1:1"}.places()
	if err != nil || len(one) != 1 || one[0] != (comet.Place{Dir: "home", API: "127.0.0.1:1"}) {
		t.Errorf("one replica: %+v, %v", one, err)
	}
	open, err := Replica{Home: "home", Public: []string{"a.example:1000"}}.places()
	if err != nil || len(open) != 1 || open[0] != (comet.Place{Dir: "home", API: "0.0.0.0:7370", Peering: "0.0.0.0:1000", Public: "a.example:1000"}) {
		t.Errorf("one that others reach: %+v, %v", open, err)
	}
	here, err := Replica{Home: "home", Replicas: 2}.places()
	if err != nil || here[0].API == here[1].API || here[0].Peering == here[1].Peering || here[0].Dir == here[1].Dir {
		t.Errorf("two on a machine: %+v, %v", here, err)
	}
	far, err := Replica{Home: "home", Public: []string{"a.example", "[2001:db8::1]"}}.places()
	if err != nil || far[0].API != "0.0.0.0:7370" || far[1].API != "[::]:7370" || far[1].Public != "[2001:db8::1]:26656" || far[0].Dir == far[1].Dir {
		t.Errorf("two machines: %+v, %v", far, err)
	}
	for _, v := range []struct {
		n      int
		api    string
		public []string
		want   string
	}{
		{-1, "", nil, "--replicas -1"},
		{host.SeatsMax + 1, "", nil, "--replicas 101: want"},
		{2, "", []string{"a"}, "--public 1 times"},
		{2, "127.0.0.1:1", nil, "--api"},
		{0, "", []string{"0.0.0.0"}, "at which others reach"},
		{0, "", []string{"a:0"}, "at which others reach"},
		{0, "", []string{"https://a"}, "--public"},
		{0, "", []string{"a:b:c"}, "--public"},
		{0, "", []string{""}, "--public"},
	} {
		_, err := Replica{Home: "home", API: v.api, Replicas: v.n, Public: v.public}.places()
		says(t, fmt.Sprint(v.n, v.public), err, v.want)
	}
}

func TestAccounts(t *testing.T) {
	ann, owner := key.FromSeed([32]byte{1}).Public(), key.FromSeed([32]byte{2}).Public()
	gives := func(k key.Public, amount string) string { return k.String() + "=" + amount }
	asked := 0
	ask := func() (key.Public, error) {
		asked++
		return owner, nil
	}
	for _, v := range []struct {
		what     string
		allocate []string
		supply   uint64
		want     string // the amounts, or the error
	}{
		{"nothing", nil, 0, "[]"},
		{"no more than is given", []string{gives(ann, "5")}, 5, "[5]"},
		{"the rest is the owner's", []string{gives(ann, "5")}, 8, "[5 3]"},
		{"the rest adds to the owner's", []string{gives(owner, "5"), gives(ann, "1")}, 8, "[7 1]"},
		{"less than is given", []string{gives(ann, "5")}, 4, "--supply 4"},
		{"too much", nil, host.SupplyMax + 1, "--supply"},
		{"no key", []string{"ann=5"}, 0, `--allocate "ann=5"`},
		{"no amount", []string{ann.String()}, 0, "--allocate"},
		{"zero", []string{gives(ann, "0")}, 0, "--allocate"},
		{"a sum that overflows", []string{gives(ann, fmt.Sprint(uint64(host.SupplyMax))), gives(owner, "1")}, 0, "--allocate"},
	} {
		list, err := accounts(v.allocate, v.supply, ask)
		amounts := []uint64{}
		for _, a := range list {
			amounts = append(amounts, a.Amount)
		}
		if got := fmt.Sprint(amounts); err == nil && got != v.want || err != nil && !strings.Contains(err.Error(), v.want) {
			t.Errorf("%s: %s, %v; want %s", v.what, got, err, v.want)
		}
	}
	if asked != 2 {
		t.Errorf("the owner's key was asked for %d times, want 2: it may ask a person", asked)
	}
	none := errors.New("no key")
	if _, err := accounts(nil, 5, func() (key.Public, error) { return key.Public{}, none }); !errors.Is(err, none) {
		t.Errorf("without an owner: %v", err)
	}
}

func TestPeersAreReachedWhereTheirAPIIs(t *testing.T) {
	for _, v := range [][3]string{
		{"id@0.0.0.0:26656", "http://a.example:7370", "id@a.example:26656"},
		{"id@[::]:26656", "http://[2001:db8::1]:7370", "id@[2001:db8::1]:26656"},
		{"id@b.example:1", "http://a.example:7370", "id@b.example:1"},
		{"", "http://a.example:7370", ""}, {"id@nowhere", "http://a.example", ""}, {"id@0.0.0.0:1", "http://%zz", ""},
	} {
		if got, err := peerAt(v[0], v[1]); got != v[2] || (err == nil) != (v[2] != "") {
			t.Errorf("%q at %q: %q, %v; want %q", v[0], v[1], got, err, v[2])
		}
	}
}

func TestFollowNeedsAReplica(t *testing.T) {
	_, err := Replica{Home: t.TempDir(), Replicas: 1}.Follow(t.Context(), []string{"http://127.0.0.1:1"})
	says(t, "a port where nobody is", err, "nobody serves the chain")
	_, err = Replica{Home: t.TempDir(), Replicas: 1}.Follow(t.Context(), []string{"ftp://x"})
	says(t, "another scheme", err, "ftp")
}

func TestTermsChange(t *testing.T) {
	now := coordinator.Config{Rate: 1, EpochMs: 2, WarmupMs: 3}
	got, err := Change(now, []string{"trust.rate=7", "times.epoch=90s"})
	if err != nil || got != (coordinator.Change{Rate: 7, EpochMs: 90_000, WarmupMs: 3}) {
		t.Errorf("%+v, %v", got, err)
	}
	for term, want := range map[string]string{
		"steps=5": "want KEY=VALUE", "trust.rate": "--set", "trust.rate=-1": "--set", "times.epoch=5": "--set",
		"times.epoch=-5s": "not negative", "": "want KEY=VALUE",
	} {
		_, err := Change(now, []string{term})
		says(t, term, err, want)
	}
}

// prepared returns a directory with a small data set, and its hash.
func prepared(t *testing.T) (dir, hash string) {
	t.Helper()
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("some words to learn. ", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "data")
	m, err := data.Prepare(t.Context(), dir, []string{text}, data.PrepareOptions{Name: "words", Tokenizer: tokenizer.Bytes{}})
	if err != nil {
		t.Fatal(err)
	}
	return dir, m.Hash().String()
}

const small = "name = \"small\"\nsteps = 10\n[learning_rate]\nwarmup = 2\n[model]\nvocab = 256\nhidden = 8\nlayers = 1\nheads = 1\nkv_heads = 1\nhead_dim = 8\nffn = 16\ncontext = 64\n"

func TestDraftsAreCompleted(t *testing.T) {
	dir, hash := prepared(t)
	const sequence = "[data]\nsequence = 32\n"
	s, text, err := Draft{Text: []byte(small + sequence), Data: dir}.Complete()
	if err != nil || s.Data.Manifest != hash || !strings.Contains(string(text), hash) || !s.Followers() {
		t.Fatalf("manifest %q, want %s: %v", s.Data.Manifest, hash, err)
	}
	if again, err := spec.Parse(text, all.Kinds()); err != nil || again != s {
		t.Errorf("the published text means something else: %v", err)
	}
	// What is complete is published as its author wrote it.
	whole := small + sequence + "manifest = \"" + hash + "\"\n[exchange]\naggregate = \"none\"\n"
	if _, text, err = (Draft{Text: []byte(whole), Data: dir}).Complete(); err != nil || string(text) != whole {
		t.Errorf("a complete text was changed: %v", err)
	}
	if s, err := (Draft{Text: []byte(small + sequence)}).Read(); err != nil || s.Data.Manifest != "" {
		t.Errorf("read without data: %q, %v", s.Data.Manifest, err)
	}
	for what, v := range map[string]struct {
		draft Draft
		want  string
	}{
		"no data":               {Draft{Text: []byte(small + sequence)}, "--data DIR"},
		"data that is not here": {Draft{Text: []byte(small + sequence), Data: filepath.Join(dir, "none")}, "entrain data prepare"},
		"other data":            {Draft{Text: []byte(small + sequence + "manifest = \"" + wire.Hash{1}.String() + "\"\n"), Data: dir}, "data.manifest is"},
		"a small vocabulary":    {Draft{Text: []byte(strings.Replace(small, "256", "200", 1) + sequence), Data: dir}, "vocabulary of 256"},
		"no TOML":               {Draft{Text: []byte("name")}, ""},
		"no checkpoint":         {Draft{Text: []byte(small + sequence), Data: dir, From: dir}, "--from"},
		"nothing to resume":     {Draft{Text: []byte(small + sequence), Data: dir, Resume: true}, "--resume: say from which checkpoint"},
	} {
		if _, _, err := v.draft.Complete(); err == nil || !strings.Contains(err.Error(), v.want) {
			t.Errorf("%s: error %v, want %q", what, err, v.want)
		}
	}
}

func TestOnlyTheSameTrainingIsTakenUp(t *testing.T) {
	dir, _ := prepared(t)
	s, _, err := Draft{Text: []byte(small + "[data]\nsequence = 32\n"), Data: dir}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := wire.ParseHash(s.Data.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.StateLen()
	if err != nil {
		t.Fatal(err)
	}
	same := checkpoint.Training{Data: manifest, Order: s.DataSeed(), Tokens: 32, Codec: s.Optimizer.Kind().Name, Optimizer: n}
	if err := sameTraining(s, same); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*checkpoint.Training){
		"another order":    func(c *checkpoint.Training) { c.Order = wire.Hash{} },
		"the data set":     func(c *checkpoint.Training) { c.Data = wire.Hash{} },
		"data.sequence":    func(c *checkpoint.Training) { c.Tokens++ },
		"optimizer.codec":  func(c *checkpoint.Training) { c.Codec = "other" },
		"numbers of optim": func(c *checkpoint.Training) { c.Optimizer++ },
	} {
		other := same
		change(&other)
		says(t, want, sameTraining(s, other), want)
	}
}

func TestPreviewsFollowTheCoordinator(t *testing.T) {
	s, err := Draft{Text: []byte(small + "[data]\nsequence = 32\n[batch]\nstart = 4\nend = 8\nramp_tokens = 1000\n[members]\nmin = 3\n")}.Read()
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPreview(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Steps) != 10 || p.Steps[0].Batch != 4 || p.Steps[9].Batch != 8 || p.Tokens != p.Steps[9].Tokens || p.Received != 2*p.Needs.Payload {
		t.Errorf("%+v", p)
	}
	for i := 1; i < len(p.Steps); i++ {
		if before, now := p.Steps[i-1], p.Steps[i]; now.Batch < before.Batch || now.Tokens != before.Tokens+uint64(now.Batch)*32 {
			t.Errorf("step %+v after %+v", now, before)
		}
	}
	var b strings.Builder
	if err := p.Write(&b); err != nil || !strings.Contains(b.String(), "sequences in a batch") || !strings.Contains(b.String(), "with 3 members") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// A file of conversations is rendered by the template of the model that learns from it, and masked.
func TestAHostPreparesConversations(t *testing.T) {
	made := filepath.Join("..", "data", "source", "testdata", "chat")
	words, err := data.ReadTokenizer(filepath.Join(made, "bytes"))
	if err != nil {
		t.Fatal(err)
	}
	template, err := data.ReadChat(filepath.Join(made, "bytes"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := llama.Config{Vocab: int(words.Vocab()), Hidden: 4, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 4, FFN: 4, Context: 8, Theta: 100, Eps: 1e-5}
	from := filepath.Join(t.TempDir(), "model")
	m := checkpoint.Model{Run: "chats", Config: model.CheckpointConfig(cfg), Tokenizer: words, Layout: cfg.Layout(), Params: llama.Init(cfg, wire.Hash{}), Chat: template}
	if _, err := model.Write(t.Context(), from, m, checkpoint.Options{}); err != nil {
		t.Fatal(err)
	}
	h := Hosting{From: from, Say: t.Logf}
	paper := filepath.Join(t.TempDir(), "paper")
	if err := os.WriteFile(paper, []byte(strings.Repeat("the light ", 2000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, masked := range map[string]bool{filepath.Join(made, "messages.jsonl"): true, paper: false} {
		h.Home, h.Data = t.TempDir(), file
		dir, err := h.prepare(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if set, err := data.ReadManifest(dir); err != nil || set.Masked != masked || set.Chat != template {
			t.Errorf("%s: masked %t, template %q, %v", h.Data, set.Masked, set.Chat, err)
		}
	}
}

// The home of a hosted run can be moved, also one that was made when host.json had absolute paths.
func TestAHostedHomeCanBeMoved(t *testing.T) {
	at := t.TempDir()
	home, moved, given := filepath.Join(at, "home"), filepath.Join(at, "elsewhere", "moved"), filepath.Join(at, "book.txt")
	for _, dir := range []string{home, filepath.Dir(moved)} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	old, err := json.Marshal(hostedSource{Data: filepath.Join(home, "data"), Given: given, From: filepath.Join(home, "from"), IP: "203.0.113.7"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, sourceFile), old, 0o600); err != nil {
		t.Fatal(err)
	}
	settled := func(h Hosting, ip string) {
		t.Helper()
		want := hostedSource{Data: filepath.Join(h.Home, "data"), Given: given, From: filepath.Join(h.Home, "from"), IP: ip}
		if s, err := h.settle(t.Context()); err != nil || s != want {
			t.Errorf("it has %+v, %v, want %+v", s, err, want)
		}
	}
	settled(Hosting{Home: home}, "203.0.113.7")
	if err := os.Rename(home, moved); err != nil {
		t.Fatal(err)
	}
	settled(Hosting{Home: moved, Data: given, From: filepath.Join(moved, "from"), PublicIP: "203.0.113.8"}, "203.0.113.8")
	settled(Hosting{Home: moved}, "203.0.113.8")
	_, err = Hosting{Home: moved, From: filepath.Join(home, "from")}.settle(t.Context())
	says(t, "the place that it left", err, "another --from ("+moved)
}

func TestHostingNamesTheFlagAtFault(t *testing.T) {
	for _, v := range []struct {
		h    Hosting
		want string
	}{
		{Hosting{Port: 0}, "--port 0"}, {Hosting{Port: 65535}, "--port 65535"}, {Hosting{Port: 7000, PublicIP: "here"}, `--public-ip "here"`},
	} {
		_, err := v.h.listenAt()
		says(t, v.want, err, v.want)
	}
	if ips, err := (Hosting{PublicIP: "203.0.113.7"}).addresses(); err != nil || len(ips) != 1 || ips[0] != "203.0.113.7" {
		t.Errorf("%v, %v", ips, err)
	}
	if ips, err := (Hosting{}).addresses(); err != nil || len(ips) < 1 || len(ips) > addressesMost {
		t.Errorf("%v, %v", ips, err)
	}
	if ms, err := milliseconds("1m30s"); err != nil || ms != uint64(90*time.Second/time.Millisecond) {
		t.Errorf("%d ms, %v", ms, err)
	}
}

// A full disk stops the chain, and the member with it, whose error says less.
func TestAHostNamesTheServerThatFailed(t *testing.T) {
	chain, log := errors.New("the chain has halted"), errors.New("the log was not written")
	for _, c := range []struct{ cause, member, servers, want error }{
		{chain, log, chain, chain},
		{chain, context.Canceled, chain, chain},
		{context.Canceled, log, nil, log},
		{context.Canceled, log, chain, log},
		{context.Canceled, nil, nil, nil},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(c.cause)
		if got := causeOf(ctx, c.member, errors.Join(c.servers)); !errors.Is(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

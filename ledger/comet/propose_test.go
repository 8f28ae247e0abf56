package comet

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"

	"github.com/entrain-network/entrain/chance"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger/comet/headers"
	"github.com/entrain-network/entrain/wire"
)

// proposer is a replica's application before the first block, and the address of its replica.
func proposer(t testing.TB) (*app, []byte) {
	t.Helper()
	h, err := readHome(replicaDir(t, Options{}))
	if err != nil {
		t.Fatal(err)
	}
	a, err := newApp(h, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a, h.validator.GetAddress()
}

func TestProposalsThatNoHonestProposerMakesAreRefused(t *testing.T) {
	a, self := proposer(t)
	tx, err := signer("ann").Sign(time.Now(), join("demo"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := a.PrepareProposal(t.Context(), &abci.RequestPrepareProposal{
		Height: 1, MaxTxBytes: 1 << 20, Txs: [][]byte{wakeTx(1), tx}, ProposerAddress: self, Time: time.Now(),
	})
	if err != nil || len(made.Txs) != 2 || !bytes.Equal(made.Txs[1], tx) {
		t.Fatalf("%d transactions are proposed (%v)", len(made.Txs), err)
	}
	b, _ := readBeacon(made.Txs)
	with := func(change func(*beacon)) []byte {
		c := b
		change(&c)
		return c.append(nil)
	}
	forged := bytes.Clone(tx)
	forged[len(forged)-1] ^= 1
	for name, p := range map[string]struct {
		txs    [][]byte
		height int64
		want   bool
	}{
		"as made":            {made.Txs, 1, true},
		"old":                {[][]byte{with(func(b *beacon) { b.timeMs = 1 }), tx}, 1, true},
		"none":               {nil, 1, false},
		"no beacon":          {[][]byte{tx}, 1, false},
		"future":             {[][]byte{with(func(b *beacon) { b.timeMs += uint64(clockAhead.Milliseconds()) + 60_000 })}, 1, false},
		"another value":      {[][]byte{with(func(b *beacon) { b.proof[3] ^= 1 })}, 1, false},
		"value of another":   {made.Txs, 2, false},
		"a wake":             {[][]byte{made.Txs[0], wakeTx(1)}, 1, false},
		"forged transaction": {[][]byte{made.Txs[0], forged}, 1, false},
		"two beacons":        {[][]byte{made.Txs[0], made.Txs[0]}, 1, false},
	} {
		res, err := a.ProcessProposal(t.Context(), &abci.RequestProcessProposal{Height: p.height, Txs: p.txs, ProposerAddress: self})
		if err != nil || res.IsAccepted() != p.want {
			t.Errorf("%s: accepted %v (%v), want %v", name, res.IsAccepted(), err, p.want)
		}
	}
	if res, _ := a.ProcessProposal(t.Context(), &abci.RequestProcessProposal{Height: 1, Txs: made.Txs, ProposerAddress: []byte("nobody")}); res.IsAccepted() {
		t.Error("a block of nobody is accepted")
	}
}

// TestAProposerCannotChooseASeed makes all the blocks that a proposer could make of some
// transactions: the seed is one.
func TestAProposerCannotChooseASeed(t *testing.T) {
	a, self := proposer(t)
	var seeds []wire.Hash
	for i := range 8 {
		made, err := a.PrepareProposal(t.Context(), &abci.RequestPrepareProposal{
			Height: 1, MaxTxBytes: 1 << 20, ProposerAddress: self, Time: time.Now().Add(time.Duration(i) * time.Second),
		})
		if err != nil {
			t.Fatal(err)
		}
		b, _ := readBeacon(made.Txs)
		value, err := a.value(b, 1, self)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, nextSeed(a.host.Seed(), value))
	}
	for _, s := range seeds {
		if s != seeds[0] {
			t.Error("a proposer has a choice of seeds")
		}
	}
}

func TestBlocksKeepWithinTheirLimit(t *testing.T) {
	a, self := proposer(t)
	var txs [][]byte
	for range 20 {
		txs = append(txs, make([]byte, 1000))
	}
	made, err := a.PrepareProposal(t.Context(), &abci.RequestPrepareProposal{Height: 1, MaxTxBytes: 5000, Txs: txs, ProposerAddress: self})
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, tx := range made.Txs {
		total += size(tx)
	}
	if total > 5000 || len(made.Txs) != 5 {
		t.Errorf("%d transactions of %d bytes", len(made.Txs), total)
	}
}

// TestFalseHeadersAreNotBelieved changes every byte of a header with its signatures.
func TestFalseHeadersAreNotBelieved(t *testing.T) {
	r, _ := start(t, replicaDir(t, Options{}))
	c := newClient(t, r.Endpoint())
	if err := submit(t, c, signer("ann"), host.Announce{Run: "none"}); codeOf(t, err) != host.CodeUnknownRun {
		t.Fatal(err)
	}
	if _, err := c.Replicas(t.Context()); err != nil {
		t.Fatal(err)
	}
	block := c.trust.At(c.trust.Newest())
	good, err := headers.Encode(block)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 1
		if got, err := headers.Parse(b, testChain); err == nil && !bytes.Equal(got.Hash(), block.Hash()) {
			t.Fatalf("a header with byte %d changed is believed", i)
		}
	}
	if _, err := headers.Parse(good, "other"); err == nil {
		t.Error("a header of another chain is believed")
	}
	if err := c.trust.Check(uint64(block.Height), wire.Sum("entrain/test/false")); err == nil {
		t.Error("a header proves any state")
	}
}

func TestAChanceKeyThatIsDamagedIsFound(t *testing.T) {
	dir := replicaDir(t, Options{})
	other, err := chance.NewSecret(wire.Sum("entrain/test/chance"))
	if err != nil {
		t.Fatal(err)
	}
	k := newChanceKey(other)
	k.Public[0] ^= 1
	writeJSON(t, filepath.Join(dir, chanceFile), k)
	_, err = Open(dir, nil, nil)
	contains(t, err, chanceFile, "secret is not that of")
}

// A transaction of a stranger, and a block of one, are refused or taken, in few words, and change nothing before they are decided on.
func FuzzStrangers(f *testing.F) {
	a, self := proposer(f)
	tx, err := signer("ann").Sign(time.Now(), join("demo"))
	if err != nil {
		f.Fatal(err)
	}
	made, err := a.PrepareProposal(f.Context(), &abci.RequestPrepareProposal{Height: 1, MaxTxBytes: 1 << 20, ProposerAddress: self, Time: time.Now()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(tx)
	f.Add(wakeTx(1))
	f.Add(made.Txs[0])
	before := a.host.Append(nil)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, kind := range []abci.CheckTxType{abci.CheckTxType_New, abci.CheckTxType_Recheck} {
			answer, err := a.CheckTx(t.Context(), &abci.RequestCheckTx{Tx: b, Type: kind})
			if err != nil || len(answer.Log) > 4<<10 {
				t.Fatalf("%v, %d bytes of words", err, len(answer.Log))
			}
		}
		for _, txs := range [][][]byte{{b}, {made.Txs[0], b}} {
			if _, err := a.ProcessProposal(t.Context(), &abci.RequestProcessProposal{Height: 1, Txs: txs, ProposerAddress: self, Time: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(a.host.Append(nil), before) {
			t.Fatal("the ledger has changed")
		}
	})
}

func FuzzLight(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{10, 2, 10, 0, 18, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if block, err := headers.Parse(b, testChain); err == nil {
			if _, err := headers.Encode(block); err != nil {
				t.Error(err)
			}
		}
		if content, _, err := headers.New(testChain).Open(b, time.Now()); err == nil && len(content) > len(b) {
			t.Error("an answer has grown")
		}
		_, _ = readBeacon([][]byte{b})
		_, _ = ParseAnchor(string(b))
		_, _ = parseChanceKey(b)
	})
}

func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, b, secretMode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

package netns

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	chain "github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/chain/solana/local"
	"github.com/entrain-network/entrain/chain/solana/svm"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger/solana"
)

// cluster is a cluster of Solana on a machine.
type cluster struct {
	*machine
	url  string
	args []string
}

// cluster returns a cluster that keeps its accounts over restarts, or skips the test.
func (m *machine) cluster() cluster {
	m.Helper()
	program := chain.Program{'n', 'e', 't', 'n', 's'}
	args, err := local.Command(local.Options{
		Listen: m.address + ":8899", Program: program, Folder: svm.Folder(m.T), Block: 200 * time.Millisecond, Keep: m.path("solana.sqlite"),
	})
	if err != nil {
		m.Fatal(err)
	}
	return cluster{m, solana.Place{Endpoint: "http://" + m.address + ":8899", Program: program}.String(), args}
}

// begin starts the cluster.
func (c cluster) begin() *process {
	c.Helper()
	p := c.start(Command(context.Background(), c.ns, c.args...))
	p.until(time.Minute, "the cluster listening", func() bool { return countOf(p.events, func(ev timed) bool { return ev.Kind == "listening" }) > 0 })
	return p
}

// endow gives a machine's key SOL.
func (c cluster) endow(m *machine) {
	c.Helper()
	k, err := key.ParsePublic(m.ok("key"))
	if err != nil {
		c.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "requestAirdrop", "params": []any{chain.Address(k), uint64(100e9)}})
	if err != nil {
		c.Fatal(err)
	}
	out, err := Command(c.Context(), c.ns, "curl", "-sS", "--data", string(body), "http://"+c.address+":8899").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "result") {
		c.Fatalf("airdrop: %v, %s", err, out)
	}
}

const onSolana = `
steps = 400

[model]
preset = "nano"

[batch]
start = 8

[members]
min = 2
start = 3
overlap = 0

[times]
waiting = "1s"
warmup = "20s"
round_train = "20s"
round_witness = "5s"
epoch = "60s"

[trust]
verification_percent = 0
`

// Four members on links of 100 Mb/s, 80 ms apart and losing 1 % of the packets, train in a run on
// Solana. One is cut off from the others and the cluster, which is then killed, and both come back.
func TestARunOnSolanaAcrossTheInternet(t *testing.T) {
	long(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("the test asks the cluster with curl: ", err)
	}
	s := newStage(t, 5)
	c := s.machine("chain", "45.0.0.1", Home).cluster()
	running := c.begin()
	c.endow(c.machine)
	f := &founded{stage: s, chain: c.machine, run: "stage", data: s.path("data"), at: []string{"--chain", c.url}}
	f.open(onSolana)
	var members []*process
	for i, name := range []string{"a", "b", "c", "d"} {
		m := s.machine(name, fmt.Sprintf("45.0.2.%d", i+1), Home)
		c.endow(m)
		members = append(members, f.join(m))
	}
	a, last := members[0], members[3]
	for _, p := range members {
		p.applies(6*time.Minute, 3)
	}
	t.Log("four members train")

	s.Cut(last.address)
	for _, p := range members[:3] {
		p.applies(5*time.Minute, p.count(isApplied)+3)
	}
	t.Log("one is cut off, and three go on")
	s.Cut()
	n := a.count(isApplied) + 2
	a.applies(5*time.Minute, n)
	last.until(5*time.Minute, "back", func() bool { return last.caughtUp(n, a) })
	t.Log("it is back")

	running.kill()
	c.begin()
	for _, p := range members {
		p.applies(5*time.Minute, p.count(isApplied)+2)
	}
	t.Log("the cluster was killed, and all go on")
	s.sameParameters(members)
}

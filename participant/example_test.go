package participant_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/founding"
	"github.com/entrain-network/entrain/key/keyfile"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/verify"
)

// specification is a run of two steps for one member.
const specification = `
name = "example"
steps = 2
[model]
vocab = 256
context = 32
hidden = 32
ffn = 64
layers = 1
heads = 2
kv_heads = 1
[data]
sequence = 32
[batch]
start = 2
[learning_rate]
warmup = 1
[members]
min = 1
[times]
waiting = "0s"
warmup = "1m"
round_train = "1m"
epoch = "1h"
[trust]
verification_percent = 0
`

// A program founds a chain and a run, and takes part in the run until it has finished. A member of
// somebody else's run needs only the last part, with the run's ticket as the target.
func Example() {
	dir, err := os.MkdirTemp("", "entrain-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	err = example(context.Background(), dir, specification, func(ev event.Event) {
		switch ev := ev.(type) {
		case event.Applied:
			fmt.Println("step", ev.Step)
		case event.Finished:
			fmt.Println("finished")
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// step 1
	// step 2
	// finished
}

// A member with a policy of its own: it takes part until it has earned what it wants, and leaves the
// run, which goes on without it. Observe must not wait; to leave, it ends the member's context.
func Example_policy() {
	dir, err := os.MkdirTemp("", "entrain-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	const enough = 6 // points: sequences of accepted results
	long := strings.Replace(specification, "steps = 2\n", "steps = 1000000\n", 1)
	err = example(ctx, dir, long, func(ev event.Event) {
		if now, ok := ev.(event.State); ok && now.Points >= enough {
			leave()
		}
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
	fmt.Println("earned enough:", ctx.Err() != nil)
	// Output:
	// earned enough: true
}

// example runs a chain and a run on it, and takes part until the run has finished or ctx ends.
func example(ctx context.Context, dir, specification string, observe func(event.Event)) error {
	in := func(name string) string { return filepath.Join(dir, name) }
	own, err := keyfile.New(rand.Reader)
	if err != nil {
		return err
	}

	// The data: a text, as bytes.
	if err := os.WriteFile(in("text"), []byte(strings.Repeat("Speak the speech, I pray you. ", 200)), 0o600); err != nil {
		return err
	}
	files, err := source.Expand([]string{in("text")}, "train")
	if err != nil {
		return err
	}
	_, err = data.Prepare(ctx, in("data"), files, data.PrepareOptions{Name: "text", Tokenizer: tokenizer.Bytes{}, HeldOutPermille: 50, ShardTokens: data.ShardTokens})
	if err != nil {
		return err
	}

	// The chain: one replica, in this process.
	if err := comet.Init(in("chain"), comet.Options{Chain: "example", API: "127.0.0.1:0", Block: 50 * time.Millisecond}); err != nil {
		return err
	}
	replica, err := comet.Open(in("chain"), nil, verify.NewReferee)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx)) // a member that leaves still needs it
	ended := make(chan error, 1)
	go func() { ended <- replica.Run(serving) }()
	defer func() { stop(); <-ended }()
	endpoints := []string{replica.Endpoint()}

	// The run.
	spec, text, err := founding.Draft{Text: []byte(specification), Data: in("data")}.Complete()
	if err != nil {
		return err
	}
	client, err := onchain.Dial(ctx, endpoints, onchain.DialOptions{})
	if err != nil {
		return err
	}
	_, err = founding.Create(ctx, client, own, spec, text)
	if err := errors.Join(err, client.Close()); err != nil {
		return err
	}

	// The member.
	member, err := participant.New(ctx, participant.Options{
		Target: onchain.Target{Run: "example"}, Key: own, Endpoints: endpoints, State: in("state"), Data: in("data"), Workers: 1, Observe: observe,
	})
	if err != nil {
		return err
	}
	return errors.Join(member.Run(ctx), member.Close())
}

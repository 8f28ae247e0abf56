// Command lab runs entrain's simulations and studies: whole networks under a virtual clock, with
// faults and cheats, and measurements that the documentation quotes. The entrain program has none
// of this.
//
//	go run ./cmd/lab sim --seeds 6         networks with faults, from seeds
//	go run ./cmd/lab campaign --for 4h     random networks, until something breaks
//	go run ./cmd/lab learning              what models learn by each way of training together
//	go run ./cmd/lab numerics              what models learn in binary32 and in 8 bits
//	go run ./cmd/lab stake --check 5%      the stake at which cheating does not pay
//	go run ./cmd/lab witnesses             how safe committees of witnesses are
//	go run ./cmd/lab groups                what models larger than a machine take
//	go run ./cmd/lab fuzz-money --for 1h   random transactions, until one makes tokens
//	go run ./cmd/lab check                 every state of tiny runs
//	go run -tags counted ./cmd/lab costs   what messages cost to accept and to refuse
//	go run ./cmd/lab network               the simulation's messages against those over libp2p
//	go run ./cmd/lab adversaries           every kind of cheat
//
// Each command is in the file of its name. Results go to standard output, progress to standard
// error.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/exact"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	err := run(ctx, console{out: os.Stdout, err: os.Stderr}, os.Args[1:])
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil:
	case interrupted && errors.Is(err, context.Canceled):
		os.Exit(130) // as a shell reports a command that SIGINT ended
	default:
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// console is where a command writes.
type console struct {
	out io.Writer // results
	err io.Writer // progress
}

// say writes a line of progress.
func (c console) say(format string, args ...any) { fmt.Fprintf(c.err, format+"\n", args...) }

// object writes v as one line of JSON.
func (c console) object(v any) error { return json.NewEncoder(c.out).Encode(v) }

// run executes the command that args name.
func run(ctx context.Context, c console, args []string) error {
	root := &cobra.Command{
		Use:           "lab",
		Short:         "Simulate networks and measure what the documentation quotes",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %q", err, cmd.CommandPath()+" --help")
	})
	root.AddCommand(simCommand(c), campaignCommand(c), learningCommand(c), numericsCommand(c), robustCommand(c), sliceCommand(c), rewardsCommand(c),
		scoringCommand(c), disputeCommand(c), adversariesCommand(c), stakeCommand(c), witnessesCommand(c), groupsCommand(c), moneyCommand(c), checkCommand(c), costsCommand(c), blocksCommand(c), networkCommand(c))
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// numberMax bounds the numbers of flags: a larger one is a mistake.
const numberMax = 1 << 20

// checkThreads checks the value of --threads.
func checkThreads(n int) error {
	if n < 1 || n > exact.MaxWorkers {
		return fmt.Errorf("--threads %d: want 1 to %d", n, exact.MaxWorkers)
	}
	return nil
}

// threadsText writes a number of threads for people.
func threadsText(n int) string {
	if n == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", n)
}

package demo_test

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/entrain-network/entrain/demo"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/view"
)

// A program runs a network with a cheat, and shows the log that a window would show.
func ExampleRun() {
	ctx := context.Background()
	program, err := exec.LookPath("entrain")
	if err != nil {
		fmt.Println(err)
		return
	}
	opts := demo.Options{Settings: demo.Default("", demo.Peers, "sign-flip"), Program: program}
	fold := view.New("")
	opts.Member = fold.Name
	opts.Record = func(r runlog.Record) {
		fold.Add(r)
		for _, line := range fold.Run(r.Time).Log {
			fmt.Println(line.Who, line.Text)
		}
	}
	summary, err := demo.Run(ctx, opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(summary)
}

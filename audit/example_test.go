package audit_test

import (
	"context"
	"fmt"

	"github.com/entrain-network/entrain/audit"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
)

// Audits a round from an archive, without asking any member. No replica answers here, so nothing can
// be audited.
func ExampleRun() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a program would pass a context that lives
	_, err := audit.Run(ctx, audit.Options{
		Fetching: participant.Fetching{
			Target:    onchain.Target{Run: "my-run"},
			Endpoints: []string{"http://127.0.0.1:7370"},
		},
		Archive: "rounds",
		Report: func(r audit.Report) error {
			fmt.Println(r.Round, r.Member, r.Verdict)
			return nil
		},
	})
	fmt.Println(err != nil)
	// Output: true
}

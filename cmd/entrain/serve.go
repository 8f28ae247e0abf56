package main

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/serve"
)

func serveCommand(c console) *cobra.Command {
	var addr, device string
	var parallel int
	var receipts bool
	var from checkpointSource
	cmd := &cobra.Command{
		Use:   "serve CHECKPOINT",
		Short: "Answer requests of OpenAI's API with a model",
		Long: `Answers GET /v1/models, POST /v1/completions and POST /v1/chat/completions, as OpenAI's API does, with the
model of a checkpoint directory, or of a participant's state directory, whose newest checkpoint is used.
Answers stream if a request says so; it may ask for several, and for likelihoods, also of the prompt's tokens
(echo), as lm-evaluation-harness does. What a request asks that is not known here is refused and named.

Chats need a checkpoint with a chat_template.jinja, which "entrain model import" takes from the model. What a
message spells is text: only the template writes special tokens.

` + aboutAddresses + `

With --receipts each answer has a receipt: the hashes of model and tokenizer, the tokens of prompt and answer,
and how they were drawn. Anyone who has the model computes the answer again, bit for bit, with
entrain audit. A request that sets "seed" leaves the server no choice among answers.

Requests are answered side by side, up to --parallel at a time, on all cores or --device: they share each pass
over the parameters, and none changes another's answer. 256 more may wait, and take turns by request.
Keys and values take at most half of the memory that is free when the server starts; a device must have memory
for --parallel whole contexts. Ctrl-C finishes the answers under way.

Anyone who reaches the address can ask, and keep the machine busy. At 127.0.0.1 they must ask for localhost.`,
		Example: `  entrain model serve ./checkpoint
  entrain model serve ./state --receipts --parallel 32 --addr 127.0.0.1:8000
  entrain model serve ./checkpoint --device auto`,
		Args:              needCheckpoint,
		ValidArgsFunction: completeDirs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if parallel < 1 || parallel > 256 {
				return fmt.Errorf("--parallel %d: want 1 to 256", parallel)
			}
			m, release, err := from.open(cmd.Context(), c, args[0], model.Machine{Device: device, Texts: parallel, Rows: serve.Rows(parallel)})
			if err != nil {
				return err
			}
			defer release()
			server, err := serve.NewServer(m, parallel, int64(participant.MemoryFree()/2), receipts)
			if err != nil {
				return err
			}
			l, err := net.Listen("tcp", addr)
			if err != nil {
				return fmt.Errorf("--addr %q: %w", addr, err)
			}
			c.say("model %q at http://%s/v1; Ctrl-C ends it", m.Name, l.Addr())
			if most := server.Tokens(); most < m.Context() {
				c.say("there is memory for %d tokens of a question and its answer, of the model's %d", most, m.Context())
			}
			defer context.AfterFunc(cmd.Context(), func() { c.say("finishing the answers under way; Ctrl-C again cuts them off") })()
			return server.Serve(cmd.Context(), l)
		},
	}
	from.flags(cmd)
	textDeviceFlag(cmd, &device)
	f := cmd.Flags()
	addrFlag(cmd, &addr, "127.0.0.1:8080")
	f.IntVar(&parallel, "parallel", 8, "`number` of answers that are computed at the same time; further requests wait")
	f.BoolVar(&receipts, "receipts", false, "attach a receipt to every answer, which others can verify")
	return cmd
}

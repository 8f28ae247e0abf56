package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// ticket is all that a stranger needs to take part in a run. As text it is ticketPrefix and, in the URL alphabet of base64,
//
//	String chain | String run | 32 id of the run | 32 hash of the data's manifest | String data | U8 count | count × String address | 8 check
//
// where check begins the hash of what stands before it: it finds a ticket that was cut short or mistyped, and protects from nothing else.
type ticket struct {
	Chain     string    `json:"chain"`
	Run       string    `json:"run"`
	ID        wire.Hash `json:"id"`
	Manifest  wire.Hash `json:"manifest"`
	Data      string    `json:"data"` // address of the data; "" if whoever joins must have it
	Addresses []string  `json:"addresses"`
}

const (
	ticketPrefix       = "entrain1_"
	ticketBytesMax     = 8 << 10
	ticketAddressesMax = 16
	ticketTextMax      = 1 << 10 // of an address, and of that of the data
	ticketCheckBytes   = 8
)

// String is the ticket as one line of text without spaces.
func (t ticket) String() string {
	b := wire.AppendString(nil, t.Chain)
	b = wire.AppendString(b, t.Run)
	b = wire.AppendHash(b, t.ID)
	b = wire.AppendHash(b, t.Manifest)
	b = wire.AppendString(b, t.Data)
	b = wire.AppendU8(b, uint8(len(t.Addresses)))
	for _, a := range t.Addresses {
		b = wire.AppendString(b, a)
	}
	return ticketPrefix + base64.RawURLEncoding.EncodeToString(append(b, ticketCheck(b)...))
}

func ticketCheck(b []byte) []byte {
	h := wire.Sum("entrain/ticket/1", b)
	return h[:ticketCheckBytes]
}

var errTicket = errors.New("the ticket is cut short or mistyped: ask for it again, and copy all of the line")

// parseTicket is the inverse of String.
func parseTicket(s string) (t ticket, err error) {
	text, found := strings.CutPrefix(s, ticketPrefix)
	if !found || len(s) > ticketBytesMax {
		return t, errTicket
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < ticketCheckBytes {
		return t, errTicket
	}
	b, check := b[:len(b)-ticketCheckBytes], b[len(b)-ticketCheckBytes:]
	if !bytes.Equal(check, ticketCheck(b)) {
		return t, errTicket
	}
	r := wire.NewReader(b)
	t = ticket{Chain: r.String(ledger.ChainIDBytesMax), Run: r.String(ledger.RunNameBytesMax), ID: r.Hash(), Manifest: r.Hash(), Data: r.String(ticketTextMax)}
	for range r.U8() {
		t.Addresses = append(t.Addresses, r.String(ticketTextMax))
		if r.Err() != wire.OK {
			break
		}
	}
	if r.Done() != wire.OK || t.String() != s {
		return ticket{}, errTicket
	}
	return t, t.fault()
}

// fault is what is wrong with a ticket that is whole.
func (t ticket) fault() error {
	switch {
	case !ledger.ChainIDValid(t.Chain):
		return fmt.Errorf("the ticket's chain id %q is none", t.Chain)
	case !ledger.RunNameValid(t.Run):
		return fmt.Errorf("the ticket's run %q is none", t.Run)
	case len(t.Addresses) == 0 || len(t.Addresses) > ticketAddressesMax:
		return fmt.Errorf("the ticket has %d addresses of the chain, want 1 to %d", len(t.Addresses), ticketAddressesMax)
	case t.Data != "" && !data.IsURL(t.Data):
		return fmt.Errorf("the ticket's data %q is no address", t.Data)
	}
	for _, a := range t.Addresses {
		if clean, err := chainURL(a); err != nil || clean != a {
			return fmt.Errorf("the ticket's address %q of the chain is none", a)
		}
	}
	return nil
}

func runTicketCommand(c console) *cobra.Command {
	var chain, at []string
	var location, file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ticket RUN",
		Short: "Print a line with all a stranger needs to join a run",
		Long: `Prints a ticket: one line that holds all a stranger needs to join the run, for a mail or a page. In it are
the chain's name and addresses, the run's name and identity, and where its data is, with its hash. Who joins
with it is refused if another chain, or another run of the same name, answers at the address.

A ticket is no secret, and gives no right that others do not have. Given a ticket instead of a run's name,
this command says what it holds, with --json.`,
		Example: "  entrain run ticket my-run --at chain.example.org\n" +
			"  entrain run ticket my-run --at https://a.example.org --at 203.0.113.5:7370 --data https://data.example.org/corpus -o my-run.ticket\n" +
			"  entrain run ticket my-run.ticket --json",
		Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			on, err := c.target(args[0], &chain)
			if err != nil {
				return err
			}
			t := on.ticket
			if t == nil {
				if t, err = c.newTicket(cmd, on.run, chain, at, location); err != nil {
					return err
				}
			}
			if file != "" {
				if err := atomicfile.WriteBytes(file, 0o644, []byte(t.String()+"\n")); err != nil {
					return fmt.Errorf("ticket: %w", err)
				}
				c.say("join with: entrain join %s", file)
			}
			if asJSON {
				return c.object(t)
			}
			if file != "" {
				return nil
			}
			_, err = fmt.Fprintln(c.out, t)
			return err
		},
	}
	chainFlag(cmd, &chain)
	f := cmd.Flags()
	f.StringArrayVar(&at, "at", nil, "`HOST`, HOST:PORT or URL at which strangers reach a replica; may be repeated (default: as --chain)")
	f.StringVar(&location, "data", "", "`URL` of the prepared data (default: as the run's specification says)")
	f.StringVarP(&file, "output", "o", "", "write the ticket to this `file`")
	f.BoolVar(&asJSON, "json", false, "print what the ticket holds as a JSON object")
	return cmd
}

// newTicket makes the ticket of a run as the chain has it.
func (c console) newTicket(cmd *cobra.Command, run string, chain, at []string, location string) (*ticket, error) {
	client, err := c.dial(cmd.Context(), chain, nil)
	if err != nil {
		return nil, err
	}
	on, err := getRun(cmd.Context(), client, run)
	if err := errors.Join(err, client.Close()); err != nil {
		return nil, err
	}
	t := &ticket{Chain: client.ChainID(), Run: run, ID: on.snapshot.State.ID(), Data: location}
	if t.Manifest, err = wire.ParseHash(on.spec.Data.Manifest); err != nil {
		return nil, fmt.Errorf("the run's data.manifest: %w", err)
	}
	if len(at) == 0 {
		at = c.endpoints(chain)
	}
	for _, a := range at {
		u, err := chainURL(a)
		if err != nil {
			return nil, err
		}
		t.Addresses = append(t.Addresses, u)
	}
	if allLoopback(t.Addresses) {
		c.say("only this machine can use the ticket: %s is its own address; say at which others reach it with --at HOST", t.Addresses[0])
	}
	switch {
	case t.Data == "" && data.IsURL(on.spec.Data.Location):
		t.Data = on.spec.Data.Location
	case t.Data == "":
		c.say("the run's data is at no address: whoever joins must have it, and say where with --data; put it on a web server and name that with --data URL")
	}
	return t, t.fault()
}

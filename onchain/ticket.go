package onchain

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/wire"
)

// Ticket is all that a stranger needs to take part in a run. As text it is ticketPrefix and, in the
// URL alphabet of base64,
//
//	String chain | String run | 32 run ID | 32 hash of the data's manifest | String data |
//	U8 count | count × String address | 8 check
//
// where check is the beginning of the hash of all before it. It finds a ticket that was cut short
// or mistyped, and protects from nothing else.
type Ticket struct {
	Chain     string    `json:"chain"`
	Run       string    `json:"run"`
	ID        wire.Hash `json:"id"`
	Manifest  wire.Hash `json:"manifest"`
	Data      string    `json:"data"` // address of the data; "" if a member must have it
	Addresses []string  `json:"addresses"`
}

const (
	ticketPrefix       = "entrain1_"
	ticketBytesMax     = 8 << 10
	ticketAddressesMax = 16
	ticketTextMax      = 1 << 10 // of an address
	ticketCheckBytes   = 8
)

// NewTicket returns the ticket of a run. Location is the address of its data, "" if it has none.
// The addresses may be spelled as [URL] takes them.
func NewTicket(chain, run string, id, manifest wire.Hash, location string, addresses []string) (Ticket, error) {
	t := Ticket{Chain: chain, Run: run, ID: id, Manifest: manifest, Data: location}
	for _, a := range addresses {
		u, err := URL(a)
		if err != nil {
			return t, err
		}
		t.Addresses = append(t.Addresses, u)
	}
	return t, t.Fault()
}

// Ticket returns the run's ticket. Location is the address of its data, by default as its
// specification says; the addresses are those of the chain, as on this machine.
func (r Run) Ticket(chain, location string, addresses []string) (Ticket, error) {
	manifest, err := wire.ParseHash(r.Spec.Data.Manifest)
	if err != nil {
		return Ticket{}, fmt.Errorf("the run's data.manifest: %w", err)
	}
	if location == "" && data.IsURL(r.Spec.Data.Location) {
		location = r.Spec.Data.Location
	}
	plain := make([]string, len(addresses))
	for i, a := range addresses {
		plain[i] = Plain(a)
	}
	return NewTicket(chain, r.Spec.Name, r.Snapshot.State.ID(), manifest, location, plain)
}

// String returns the ticket as one line of text without spaces.
func (t Ticket) String() string {
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

// ParseTicket is the inverse of String.
func ParseTicket(s string) (t Ticket, err error) {
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
	t = Ticket{Chain: r.String(host.ChainIDBytesMax), Run: r.String(host.RunNameBytesMax), ID: r.Hash(), Manifest: r.Hash(), Data: r.String(ticketTextMax)}
	for range r.U8() {
		t.Addresses = append(t.Addresses, r.String(ticketTextMax))
		if r.Err() != wire.OK {
			break
		}
	}
	if r.Done() != wire.OK || t.String() != s {
		return Ticket{}, errTicket
	}
	return t, t.Fault()
}

// Fault returns what is wrong with a ticket that is complete.
func (t Ticket) Fault() error {
	switch {
	case !host.ChainIDValid(t.Chain):
		return fmt.Errorf("the ticket's chain %q is not a chain's name", t.Chain)
	case !host.RunNameValid(t.Run):
		return fmt.Errorf("the ticket's run %q is not a run's name", t.Run)
	case len(t.Addresses) == 0 || len(t.Addresses) > ticketAddressesMax:
		return fmt.Errorf("the ticket has %d addresses of the chain, want 1 to %d", len(t.Addresses), ticketAddressesMax)
	case t.Data != "" && !data.IsURL(t.Data):
		return fmt.Errorf("the ticket's data %q is not an address", t.Data)
	}
	for _, a := range t.Addresses {
		if clean, err := URL(a); err != nil || clean != a {
			return fmt.Errorf("the ticket's %q is not the address of a replica", a)
		}
	}
	return nil
}

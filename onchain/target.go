package onchain

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/ledger/solana"
	"github.com/entrain-network/entrain/wire"
)

// Target is the run that an argument names: RUN, RUN@HOST, a ticket, or a file with a ticket.
type Target struct {
	Run    string
	Ticket *Ticket // nil unless the argument was one
}

// ParseTarget reads an argument. The addresses in it become the endpoints. Endpoints that were
// named as well take precedence over a ticket's: there may be a nearer replica. A file with a
// ticket whose name could be a run's is an error where no endpoints say that a run is meant.
func ParseTarget(arg string, endpoints *[]string) (Target, error) {
	switch {
	case strings.HasPrefix(arg, ticketPrefix), strings.Contains(arg, "@"):
	case host.RunNameValid(arg):
		if info, err := os.Stat(arg); len(*endpoints) > 0 || err != nil || !info.Mode().IsRegular() {
			break
		}
		if _, err := ticketIn(arg); err == nil {
			return Target{}, fmt.Errorf("%q can be a run's name, and the file %s holds a ticket: write ./%s for the ticket, or %s@HOST for the run", arg, arg, arg, arg)
		}
	default:
		t, err := ticketIn(arg)
		if errors.Is(err, fs.ErrNotExist) {
			return Target{}, fmt.Errorf("%q is not a run's name (1 to %d of a-z, 0-9 and inner '-') or a ticket, and there is no such file", arg, host.RunNameBytesMax)
		}
		if err != nil {
			return Target{}, err
		}
		arg = t
	}
	if strings.HasPrefix(arg, ticketPrefix) {
		t, err := ParseTicket(arg)
		if err != nil {
			return Target{}, err
		}
		if len(*endpoints) == 0 {
			*endpoints = t.Addresses
		}
		return Target{Run: t.Run, Ticket: &t}, nil
	}
	run, err := LocatedOne(arg, endpoints)
	return Target{Run: run}, err
}

// ticketIn returns the text of the ticket in a file.
func ticketIn(path string) (string, error) {
	b, err := atomicfile.ReadBounded(path, ticketBytesMax)
	if err != nil {
		return "", fmt.Errorf("ticket: %w", err)
	}
	text := strings.TrimSpace(string(b))
	if !strings.HasPrefix(text, ticketPrefix) {
		return "", fmt.Errorf("the file %q does not hold a ticket: those begin with %s", path, ticketPrefix)
	}
	return text, nil
}

// ParseTargetOrChain is ParseTarget for commands that work without a run: @HOST names a chain
// alone.
func ParseTargetOrChain(args []string, endpoints *[]string) (Target, error) {
	switch {
	case len(args) == 0:
		return Target{}, nil
	case strings.HasPrefix(args[0], "@"):
		_, err := located(args[0], endpoints)
		return Target{}, err
	}
	return ParseTarget(args[0], endpoints)
}

// Check returns an error if a chain or a run is not the ticket's.
func (t Target) Check(chain string, id wire.Hash) error {
	switch {
	case t.Ticket == nil:
	case t.Ticket.Chain != chain:
		return fmt.Errorf("the ticket is for run %q on chain %q, but %q answers at its address: the chain was founded again, or this is another one; ask the person who gave you the ticket", t.Run, t.Ticket.Chain, chain)
	case t.Ticket.ID != id:
		return fmt.Errorf("the ticket is for the run %s, but run %q of chain %q is %s: it was created again, or the replica is lying; ask the person who gave you the ticket", t.Ticket.ID, t.Run, chain, id)
	}
	return nil
}

// located splits RUN@HOST[:PORT] and makes HOST the endpoint. RUN alone leaves the endpoints alone.
// RUN may be empty where HOST is not.
func located(arg string, endpoints *[]string) (run string, err error) {
	run, address, at := strings.Cut(arg, "@")
	if !host.RunNameValid(run) && !(at && run == "") {
		return "", fmt.Errorf("%q is not a run's name: names have 1 to %d of a-z, 0-9 and inner '-'", run, host.RunNameBytesMax)
	}
	if !at {
		return run, nil
	}
	if len(*endpoints) > 0 {
		return "", fmt.Errorf("%q says where the chain is, and so does --chain: leave one out", arg)
	}
	u, err := URL(address)
	if err != nil {
		return "", err
	}
	*endpoints = []string{u}
	return run, nil
}

// LocatedOne is Located for commands that need a run.
func LocatedOne(arg string, endpoints *[]string) (string, error) {
	run, err := located(arg, endpoints)
	if err == nil && run == "" {
		return "", fmt.Errorf("%q names no run: want RUN@HOST; entrain status %s shows those of the chain", arg, arg)
	}
	return run, err
}

// URL returns the address of a replica that is given as HOST, HOST:PORT or a URL, or of a chain on
// Solana. The default scheme is https for port 443 and http otherwise; the default port of http is
// the one where replicas serve clients.
func URL(host string) (string, error) {
	if solana.IsPlace(host) {
		p, err := solana.ParsePlace(host)
		return p.String(), err
	}
	host, trusted, named := strings.Cut(host, "#") // a trusted header
	if _, err := comet.ParseAnchor(trusted); err != nil {
		return "", err
	}
	text := host
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() {
		text = "[" + host + "]"
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
		if strings.HasSuffix(host, ":443") {
			text = "https://" + host
		}
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q is not the address of a replica: want HOST, HOST:PORT or https://HOST", host)
	}
	if strings.ContainsAny(u.Host, "@ \t\n") {
		return "", fmt.Errorf("%q is not the address of a replica: want HOST, HOST:PORT or https://HOST", host)
	}
	if u.Port() == "" && u.Scheme == "http" {
		_, port, err := net.SplitHostPort(comet.DefaultAPI)
		if err != nil {
			panic("entrain: " + err.Error())
		}
		u.Host = net.JoinHostPort(u.Hostname(), port)
	}
	clean := strings.TrimRight(u.String(), "/")
	if named && trusted != "" {
		clean += "#" + trusted
	}
	return clean, nil
}

// Plain returns an endpoint as others may use it: without the genesis of a chain on this machine,
// and without keys to a provider's endpoint.
func Plain(endpoint string) string {
	if p, err := solana.ParsePlace(endpoint); err == nil {
		return p.Plain()
	}
	plain, _, _ := strings.Cut(endpoint, "#0:")
	return plain
}

// DataOf returns where the data is: as flag says, else as the ticket does, else as the
// specification does. What the user did not say must be on the public internet, unless the chain is
// in a private network too.
func (t Target) DataOf(flag string, on Run, endpoints []string) (data.Place, error) {
	public := !AllPrivate(endpoints)
	switch {
	case flag != "":
		return data.Place{Location: flag}, nil
	case t.Ticket != nil && t.Ticket.Data != "":
		return data.Place{Location: t.Ticket.Data, Public: public}, nil
	case on.Spec.Data.Location != "":
		return data.Place{Location: on.Spec.Data.Location, Public: public}, nil
	}
	return data.Place{}, fmt.Errorf("run %q does not name a location of its data, manifest %s: name yours with --data DIR", on.Spec.Name, on.Spec.Data.Manifest)
}

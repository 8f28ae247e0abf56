package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/wire"
)

// target is the run that an argument names: RUN, RUN@HOST, a ticket, or a file that holds one.
type target struct {
	run    string
	ticket *ticket // nil if the argument was none
}

// target reads an argument. The addresses that it names become the endpoints, unless it is a ticket and endpoints were named as well:
// whoever has a ticket may know a nearer replica.
func (c console) target(arg string, endpoints *[]string) (target, error) {
	if !strings.HasPrefix(arg, ticketPrefix) && !strings.Contains(arg, "@") && !ledger.RunNameValid(arg) {
		b, err := atomicfile.ReadBounded(arg, ticketBytesMax)
		if errors.Is(err, fs.ErrNotExist) {
			return target{}, fmt.Errorf("%q is no run's name: those have 1 to %d of a-z, 0-9 and inner '-'; nor a ticket, nor a file that holds one", arg, ledger.RunNameBytesMax)
		}
		if err != nil {
			return target{}, fmt.Errorf("ticket: %w", err)
		}
		if arg = strings.TrimSpace(string(b)); !strings.HasPrefix(arg, ticketPrefix) {
			return target{}, fmt.Errorf("the file holds no ticket; those begin with %s", ticketPrefix)
		}
	}
	if strings.HasPrefix(arg, ticketPrefix) {
		t, err := parseTicket(arg)
		if err != nil {
			return target{}, err
		}
		if len(*endpoints) == 0 {
			*endpoints = t.Addresses
		}
		return target{run: t.Run, ticket: &t}, nil
	}
	run, err := locatedOne(arg, endpoints)
	return target{run: run}, err
}

// targetAny is target for commands that can do without a run: @HOST names a chain alone.
func (c console) targetAny(args []string, endpoints *[]string) (target, error) {
	switch {
	case len(args) == 0:
		return target{}, nil
	case strings.HasPrefix(args[0], "@"):
		_, err := located(args[0], endpoints)
		return target{}, err
	}
	return c.target(args[0], endpoints)
}

// check refuses a run that is not the ticket's.
func (t target) check(chain string, id wire.Hash) error {
	switch {
	case t.ticket == nil:
	case t.ticket.Chain != chain:
		return fmt.Errorf("the ticket is for run %q on chain %q, but %q answers at its address: the chain was founded anew, or somebody else's answers; ask whoever gave you the ticket", t.run, t.ticket.Chain, chain)
	case t.ticket.ID != id:
		return fmt.Errorf("the ticket is for the run %s, but run %q of chain %q is %s: it was created anew, or the replica is lying; ask whoever gave you the ticket", t.ticket.ID, t.run, chain, id)
	}
	return nil
}

// located splits RUN@HOST[:PORT] and makes HOST the endpoint. RUN alone leaves the endpoints alone. RUN may be empty where HOST is not.
func located(arg string, endpoints *[]string) (run string, err error) {
	run, host, at := strings.Cut(arg, "@")
	if !ledger.RunNameValid(run) && !(at && run == "") {
		return "", fmt.Errorf("%q is no run's name: those have 1 to %d of a-z, 0-9 and inner '-'", run, ledger.RunNameBytesMax)
	}
	if !at {
		return run, nil
	}
	if len(*endpoints) > 0 {
		return "", fmt.Errorf("%q says where the chain is, and so does --chain: leave one out", arg)
	}
	u, err := chainURL(host)
	if err != nil {
		return "", err
	}
	*endpoints = []string{u}
	return run, nil
}

// locatedOne is located for commands that need a run.
func locatedOne(arg string, endpoints *[]string) (string, error) {
	run, err := located(arg, endpoints)
	if err == nil && run == "" {
		return "", fmt.Errorf("%q names no run: want RUN@HOST; entrain status %s shows those of the chain", arg, arg)
	}
	return run, err
}

// chainURL is the address of a replica that a person gives as HOST, HOST:PORT or a URL. Without a scheme it is https for port 443, and else
// http; without a port, and unless it is https, it is where replicas serve clients by default.
func chainURL(host string) (string, error) {
	host, trusted, named := strings.Cut(host, "#") // a header to believe the chain by
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
		return "", fmt.Errorf("%q is no address of a replica: want HOST, HOST:PORT or https://HOST", host)
	}
	if strings.ContainsAny(u.Host, "@ \t\n") {
		return "", fmt.Errorf("%q is no address of a replica: want HOST, HOST:PORT or https://HOST", host)
	}
	if u.Port() == "" && u.Scheme == "http" {
		_, port, err := net.SplitHostPort(comet.DefaultAPI)
		if err != nil {
			panic("entrain: " + err.Error())
		}
		u.Host = net.JoinHostPort(u.Hostname(), port)
	}
	clean := strings.TrimSuffix(u.String(), "/")
	if named && trusted != "" {
		clean += "#" + trusted
	}
	return clean, nil
}

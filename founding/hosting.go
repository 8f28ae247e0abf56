package founding

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/atomicfile/dirlock"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/wire"
)

// Hosting is a run with all that others need to join it, on one machine: a chain of one replica,
// the run on it, and a server of its data. Everything is in one directory, which can be moved while
// no process uses it:
//
//	host.json     what the run was made from; written last at set-up
//	run.toml      the run's specification, complete
//	run.ticket    the ticket of the last start
//	chain/        the replica
//	data/         the data set, unless it was prepared elsewhere
//	member/       the state of the host's own member
type Hosting struct {
	Home     string // directory; "": named as the run, below Base, the user's directory for data
	Base     string
	File     string // specification; "": that of the run in Home, or a small model that learns Data
	text     []byte // of File
	Data     string // file of text or JSON lines, or directory of prepared data; "": as in Home
	From     string // directory of the checkpoint that the run starts from; "": as in Home
	Address  string // where the checkpoint in From came from, as in Draft
	Owner    key.Private
	PublicIP string // where others reach this machine; "": at its addresses in private networks
	// Port is the first of the ports that others must reach: the chain's, and above it those of
	// the member and of the data.
	Port   int
	Upload uint64 // most bytes a second of the data, and as many of the chain; 0: no limit
	Say    func(format string, args ...any)
	Log    *slog.Logger // of the replica; nil discards
}

// HostPorts is the number of ports of a Hosting.
const HostPorts = 3

// Hosted is a run that is being hosted.
type Hosted struct {
	Ticket   onchain.Ticket
	File     string // that holds the ticket
	At       string // IP address at which others reach this machine first
	Port     int    // the first of HostPorts
	Chain    string // directory of the replica
	Endpoint string // of the chain, for programs on this machine
	Data     string // directory of the prepared data
	From     string // directory of the checkpoint that the run starts from; "" is none
	Member   string // state directory for this machine's member
	Listen   string // IP:PORT where the member listens
	PublicIP string // as in Hosting
	Stake    uint64 // that the run wants of this machine's member
}

// supply is the tokens of a hosted chain: all of them the owner's.
const supply = 1_000_000_000

// hostedSource is the content of host.json. There, paths in the home are relative to it.
type hostedSource struct {
	Draft wire.Hash `json:"specification"` // hash of the text as its author wrote it
	Data  string    `json:"data"`          // as in Hosted
	Given string    `json:"data_given"`    // what it was prepared from
	From  string    `json:"from,omitempty"`
	IP    string    `json:"public_ip,omitempty"` // of the last start that named one
}

const (
	sourceFile = "host.json"
	specFile   = "run.toml"
	ticketFile = "run.ticket"

	sourceBytesMax = 64 << 10
	// heldOutPermille of the data are never trained on.
	heldOutPermille = 50
)

// Run sets the run up, or finds what an earlier Run set up, starts the servers, and calls take with
// the run. It stops the servers when take has returned, so that take may still leave the run after
// ctx ended. If a server fails, the context of take ends.
func (h Hosting) Run(ctx context.Context, take func(context.Context, Hosted) error) (err error) {
	if err := h.Place(); err != nil {
		return err
	}
	unlock, err := dirlock.Lock(h.Home, "directory of the hosted run")
	if err != nil {
		return err
	}
	defer unlock()
	from, err := h.settle(ctx)
	if err != nil {
		return err
	}
	h.PublicIP = from.IP
	ips, err := h.addresses()
	if err != nil {
		return err
	}
	manifest, err := data.ReadManifest(from.Data)
	if err != nil {
		return err
	}
	chain := filepath.Join(h.Home, "chain")
	replica, err := comet.Open(chain, h.Log, verify.NewReferee)
	if err != nil {
		return err
	}
	replica.Pace(h.Upload)
	api := netip.MustParseAddrPort(strings.TrimPrefix(replica.Endpoint(), "http://"))
	servers, stop := context.WithCancel(context.WithoutCancel(ctx))
	taking, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	ended := make(chan error, 2)
	serve := func(what string, run func() error) {
		go func() {
			err := run()
			if err != nil {
				err = &onchain.EndedError{What: what, Err: err}
				h.say("this machine's member stops: %v", err)
				giveUp(err)
			}
			ended <- err
		}()
	}
	serve("the chain", func() error { return replica.Run(servers) })
	serve("the server of the data", func() error {
		l, err := (&net.ListenConfig{}).Listen(servers, "tcp", above(api, 2).String())
		if err != nil {
			return err
		}
		return data.Serve(servers, l, from.Data, manifest, h.Upload)
	})
	defer func() {
		stop()
		err = causeOf(taking, err, errors.Join(<-ended, <-ended))
	}()
	hosted := Hosted{
		File: filepath.Join(h.Home, ticketFile), At: ips[0], Port: int(api.Port()), PublicIP: h.PublicIP,
		Chain: chain, Endpoint: "http://" + local(api).String(), Data: from.Data, From: from.From,
		Member: filepath.Join(h.Home, "member"), Listen: above(api, 1).String(),
	}
	if hosted.Ticket, hosted.Stake, err = h.found(taking, hosted.Endpoint, replica.Chain(), ips, hosted.Port); err != nil {
		return err
	}
	if err := atomicfile.WriteBytes(hosted.File, 0o644, []byte(hosted.Ticket.String()+"\n")); err != nil {
		return err
	}
	return take(taking, hosted)
}

// causeOf returns why a host has ended: what the member says of it, or what failed in the servers,
// if that ended the member too, by canceling ctx.
func causeOf(ctx context.Context, member, servers error) error {
	if servers != nil && (member == nil || errors.Is(member, context.Canceled) || errors.Is(servers, context.Cause(ctx))) {
		return servers
	}
	return member
}

// above returns the n-th port above an address.
func above(at netip.AddrPort, n uint16) netip.AddrPort {
	return netip.AddrPortFrom(at.Addr(), at.Port()+n)
}

// local returns where programs on this machine reach a server that listens at an address.
func local(at netip.AddrPort) netip.AddrPort {
	switch at.Addr() {
	case netip.IPv4Unspecified(), netip.IPv6Unspecified():
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
	}
	return at
}

// settle returns what the run was made from: as host.json has it, if it agrees with what is asked
// for now, or as it sets it up.
func (h Hosting) settle(ctx context.Context) (s hostedSource, err error) {
	path := filepath.Join(h.Home, sourceFile)
	b, err := atomicfile.ReadBounded(path, sourceBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return h.setUp(ctx)
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	s.paths(func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(h.Home, path)
	})
	differs := ""
	switch {
	case h.text != nil && wire.Sum("entrain/hosted", h.text) != s.Draft:
		differs = "specification"
	case h.Data != "" && h.Data != s.Given:
		differs = fmt.Sprintf("--data (%s)", s.Given)
	case h.From != "" && h.From != s.From:
		differs = fmt.Sprintf("--from (%s)", s.From)
	default:
		h.say("continuing the run in %s", h.Home)
		s.IP = cmp.Or(h.PublicIP, s.IP)
		return s, s.write(h.Home)
	}
	return s, fmt.Errorf("%q has a run that was made with another %s: host a new run under another name or with --home DIR, or continue that one without the flag", h.Home, differs)
}

func (h Hosting) say(format string, args ...any) {
	if h.Say != nil {
		h.Say(format, args...)
	}
}

// setUp prepares the data, completes the specification and makes the chain.
func (h Hosting) setUp(ctx context.Context) (s hostedSource, err error) {
	switch {
	case h.text == nil:
		return s, fmt.Errorf("%q has no run yet: make one with -f FILE or --data FILE", h.Home)
	case h.Data == "":
		return s, errors.New("say what the run trains on with --data: a text, a file of JSON lines, or a directory of prepared data")
	}
	at, err := h.listenAt()
	if err != nil {
		return s, err
	}
	s.Draft, s.Given, s.From, s.IP = wire.Sum("entrain/hosted", h.text), h.Data, h.From, h.PublicIP
	if s.Data, err = h.prepare(ctx); err != nil {
		return s, err
	}
	draft := Draft{Text: h.text, Data: s.Data, From: h.From, Address: h.Address, Say: h.Say}
	spec, text, err := draft.Complete()
	if err != nil {
		return s, fmt.Errorf("specification: %w", err)
	}
	if spec.Data.Location == "" { // with it the run's name and the chain's address suffice to join
		ips, err := h.addresses()
		if err != nil {
			return s, err
		}
		spec.Data.Location = dataAddress(ips[0], h.Port)
		if text, err = spec.Append(nil); err != nil {
			return s, err
		}
	}
	var suffix [3]byte
	_, _ = rand.Read(suffix[:]) // it never fails
	chain := filepath.Join(h.Home, "chain")
	if err := os.RemoveAll(chain); err != nil { // of a set-up that was interrupted
		return s, err
	}
	err = comet.Init(chain, comet.Options{
		// No other chain has the name, so that tickets and remembered headers tell them apart.
		Chain: spec.Name[:min(len(spec.Name), host.ChainIDBytesMax-7)] + "-" + hex.EncodeToString(suffix[:]),
		API:   at.String(), Operator: h.Owner.Public(), Stake: supply / 1000,
		Accounts: []host.Allocation{{Key: h.Owner.Public(), Amount: supply}},
	})
	if err != nil {
		return s, err
	}
	if err := atomicfile.WriteBytes(filepath.Join(h.Home, specFile), 0o644, text); err != nil {
		return s, err
	}
	return s, s.write(h.Home)
}

// paths replaces each path p by as(p).
func (s *hostedSource) paths(as func(string) string) {
	for _, p := range []*string{&s.Data, &s.Given, &s.From} {
		*p = as(*p)
	}
}

func (s hostedSource) write(home string) error {
	s.paths(func(path string) string {
		if in, err := filepath.Rel(home, path); path != "" && err == nil && filepath.IsLocal(in) {
			return in
		}
		return path
	})
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(filepath.Join(home, sourceFile), 0o644, append(b, '\n'))
}

// listenAt returns where the chain will serve clients, once it has seen that all ports are free.
func (h Hosting) listenAt() (netip.AddrPort, error) {
	ip := netip.IPv4Unspecified()
	if h.PublicIP != "" {
		public, err := netip.ParseAddr(h.PublicIP)
		switch {
		case err != nil:
			return netip.AddrPort{}, fmt.Errorf("--public-ip %q: want an address such as 203.0.113.7", h.PublicIP)
		case public.IsLoopback():
			ip = public
		case public.Is6():
			ip = netip.IPv6Unspecified()
		}
	}
	if h.Port < 1 || h.Port > 0xffff-HostPorts {
		return netip.AddrPort{}, fmt.Errorf("--port %d: want 1 to %d", h.Port, 0xffff-HostPorts)
	}
	at := netip.AddrPortFrom(ip, uint16(h.Port))
	for i := range uint16(HostPorts) {
		l, err := net.Listen("tcp", above(at, i).String())
		if err == nil {
			err = l.Close()
		}
		if err != nil {
			return at, fmt.Errorf("--port %d: it and the next %d must be free: %w", h.Port, HostPorts-1, err)
		}
	}
	return at, nil
}

// prepare returns the directory of the prepared data: the given one, or one made from the given
// file.
func (h Hosting) prepare(ctx context.Context) (string, error) {
	if info, err := os.Stat(h.Data); err == nil && info.IsDir() {
		if _, err := data.ReadManifest(h.Data); err == nil {
			return h.Data, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("--data: %w", err)
		}
	}
	files, err := source.Expand([]string{h.Data}, "train")
	if err != nil {
		return "", fmt.Errorf("--data: %w", err)
	}
	words, template := tokenizer.Tokenizer(tokenizer.Bytes{}), ""
	if h.From != "" {
		m, err := model.Open(h.From)
		if err == nil {
			words, err = m.Tokenizer()
		}
		if err == nil {
			template, err = m.Saved.Chat()
		}
		if err != nil {
			return "", fmt.Errorf("--from: %w", err)
		}
	}
	h.say("preparing %s with tokenizer %q", h.Data, words.Name())
	dir := filepath.Join(h.Home, "data")
	_, err = data.Prepare(ctx, dir, files, data.PrepareOptions{
		Name: data.PlainName(filepath.Base(h.Data)), Tokenizer: words, Chat: template, Format: source.Auto, HeldOutPermille: heldOutPermille, ShardTokens: data.ShardTokens,
	})
	return dir, err
}

// found creates the run unless the chain has it, and returns its ticket and its stake.
func (h Hosting) found(ctx context.Context, endpoint, chain string, ips []string, port int) (t onchain.Ticket, stake uint64, err error) {
	client, err := comet.NewClient(chain, []string{endpoint}, nil)
	if err != nil {
		return t, 0, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	text, err := atomicfile.ReadBounded(filepath.Join(h.Home, specFile), host.SpecBytesMax)
	if err != nil {
		return t, 0, err
	}
	draft := Draft{Text: text}
	s, _, err := draft.Complete()
	if err != nil {
		return t, 0, fmt.Errorf("%s: %w", specFile, err)
	}
	runs, err := firstRuns(ctx, client)
	if err != nil {
		return t, 0, err
	}
	if len(runs) == 0 {
		if _, err := Create(ctx, client, h.Owner, s, text); err != nil {
			return t, 0, err
		}
	}
	on, err := onchain.GetRun(ctx, client, s.Name)
	if err != nil {
		return t, 0, err
	}
	if text := unfunded(s, on.Snapshot.State.Treasury()); len(runs) == 0 && text != "" {
		h.say("%s", text)
	}
	var at []string
	for _, ip := range ips {
		at = append(at, net.JoinHostPort(ip, strconv.Itoa(port)))
	}
	manifest, err := wire.ParseHash(s.Data.Manifest)
	if err != nil {
		return t, 0, err
	}
	t, err = onchain.NewTicket(chain, s.Name, on.Snapshot.State.ID(), manifest, dataAddress(ips[0], port), at)
	return t, s.Trust.Stake, err
}

// dataAddress returns where others fetch the data from the machine at ip; port is the first of its.
func dataAddress(ip string, port int) string {
	return "http://" + net.JoinHostPort(ip, strconv.Itoa(port+2))
}

// firstRuns returns the runs of a chain that may still be starting.
func firstRuns(ctx context.Context, client *comet.Client) ([]ledger.RunStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	return client.Runs(ctx)
}

// startPatience bounds the start of a replica, which replays the last blocks.
const startPatience = 2 * time.Minute

// addresses returns the IP addresses at which others reach this machine: the public one, or those
// in private networks, or that of the machine itself if it has no others.
func (h Hosting) addresses() ([]string, error) {
	if h.PublicIP != "" {
		return []string{h.PublicIP}, nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var ips []string
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsPrivate() && p.Addr().Is4() {
			ips = append(ips, p.Addr().String())
		}
	}
	if len(ips) == 0 {
		ips = []string{"127.0.0.1"}
	}
	return ips[:min(len(ips), addressesMost)], nil
}

// addressesMost bounds the addresses of a ticket: machines with many virtual networks have many.
const addressesMost = 4

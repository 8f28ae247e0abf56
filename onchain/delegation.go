package onchain

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Delegation is a host.Certificate with the run and the node it is for. As text it is
// DelegationPrefix and, in the URL alphabet of base64,
//
//	String chain | String run | 32 node | 32 owner | U64 expires | 64 signature
type Delegation struct {
	Chain       string           `json:"chain"`
	Run         string           `json:"run"`
	Node        key.Public       `json:"node"`
	Certificate host.Certificate `json:"-"`
}

const (
	DelegationPrefix   = "entrain-node1_"
	delegationBytesMax = 1 << 10
)

// NewDelegation signs a delegation that ends after a time.
func NewDelegation(owner key.Private, chain, run string, node key.Public, last time.Duration) (d Delegation, err error) {
	switch {
	case !host.ChainIDValid(chain):
		return d, fmt.Errorf("--chain-id %q is not a chain's name: say which chain the run is on; entrain status shows its name", chain)
	case last <= 0 || last.Milliseconds() > host.DelegationMsMax:
		return d, fmt.Errorf("--for %s: want more than nothing and at most %d days", last, host.DelegationMsMax/(24*3600*1000))
	case owner.Public() == node:
		return d, errors.New("this is your own key, which needs no delegation")
	}
	d = Delegation{Chain: chain, Run: run, Node: node}
	d.Certificate = host.NewCertificate(owner, chain, run, node, uint64(time.Now().Add(last).UnixMilli()))
	return d, nil
}

// String returns the delegation as one line of text without spaces.
func (d Delegation) String() string {
	b := wire.AppendString(wire.AppendString(nil, d.Chain), d.Run)
	return DelegationPrefix + base64.RawURLEncoding.EncodeToString(d.Certificate.Append(append(b, d.Node[:]...)))
}

// ErrDelegation reports a text that is not a delegation signed by its owner.
var ErrDelegation = errors.New("the delegation is cut short or mistyped: copy all of the line that entrain key delegate has printed")

// ParseDelegation is the inverse of String. It checks the owner's signature.
func ParseDelegation(s string) (d Delegation, err error) {
	text, found := strings.CutPrefix(s, DelegationPrefix)
	if !found || len(s) > delegationBytesMax {
		return d, ErrDelegation
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return d, ErrDelegation
	}
	r := wire.NewReader(b)
	d = Delegation{Chain: r.String(host.ChainIDBytesMax), Run: r.String(host.RunNameBytesMax), Node: key.Public(r.Hash()), Certificate: host.ReadCertificate(&r)}
	if r.Done() != wire.OK || !d.Certificate.Valid(d.Chain, d.Run, d.Node) {
		return Delegation{}, ErrDelegation
	}
	return d, nil
}

// ReadDelegation reads a delegation from its text, or from the file that arg names.
func ReadDelegation(arg string) (Delegation, error) {
	if !strings.HasPrefix(arg, DelegationPrefix) {
		b, err := atomicfile.ReadBounded(arg, delegationBytesMax)
		if errors.Is(err, fs.ErrNotExist) {
			return Delegation{}, fmt.Errorf("%q is neither a delegation, which begins with %s, nor a file with one", arg, DelegationPrefix)
		}
		if err != nil {
			return Delegation{}, fmt.Errorf("delegation: %w", err)
		}
		arg = string(bytes.TrimSpace(b))
	}
	return ParseDelegation(arg)
}

// Expires returns when the node stops working for its owner.
func (d Delegation) Expires() time.Time { return time.UnixMilli(int64(d.Certificate.ExpiresMs)) }

// Check returns an error if a node cannot use the delegation in a run.
func (d Delegation) Check(chain, run string, node key.Public, now time.Time) error {
	switch {
	case d.Chain != chain || d.Run != run:
		return fmt.Errorf("the delegation is for run %q of chain %q, not for run %q of chain %q", d.Run, d.Chain, run, chain)
	case d.Node != node:
		return fmt.Errorf("the delegation is for the node %s, and this is %s: name its key with --key FILE, or ask for a delegation of this one", d.Node, node)
	case !now.Before(d.Expires()):
		return fmt.Errorf("the delegation expired at %s; ask its owner for another", d.Expires().Format(time.RFC3339))
	}
	return nil
}

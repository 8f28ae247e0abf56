package participant

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/view"
)

// Past is what is known of a run, from a participant's log and from the chain, either of which may
// be gone.
type Past struct {
	fold  *view.Fold
	state string
	chain string // "" if it was not asked
	text  []byte // the specification
}

// OpenPast reads the log in a state directory; "" is none.
func OpenPast(ctx context.Context, state string) (*Past, error) {
	p := &Past{fold: view.New(""), state: state}
	if state == "" {
		return p, nil
	}
	dir := filepath.Join(state, LogDir)
	p.text = Specification(dir)
	p.fold.NameOps(OpNames(dir))
	if err := runlog.Read(ctx, dir, p.fold.Add); err != nil {
		return nil, fmt.Errorf("%w; --state is the state directory of a participant, which entrain join names", err)
	}
	return p, nil
}

// Add adds what the chain says of the run now.
func (p *Past) Add(ctx context.Context, client ledger.Chain, on onchain.Run) error {
	if log, now := p.fold.Run(time.Now()).ID, on.Snapshot.State.ID().String(); log != "" && log != now {
		return fmt.Errorf("the log is of run %s, but run %q of chain %q is %s", log, on.Spec.Name, client.ChainID(), now)
	}
	p.chain, p.text = client.ChainID(), on.Text
	p.fold.NameOps(verify.OpNames(on.Text))
	p.fold.Called(view.NamesOn(ctx, client))
	p.fold.Add(runlog.Record{Time: time.Now(), Standing: runlog.Digest(on.Snapshot)})
	return nil
}

// Run returns the run as of now, which must be the one named, and its specification, nil if that is
// not at hand.
func (p *Past) Run(name string, now time.Time) (r view.Run, s *spec.Spec, err error) {
	r = p.fold.Run(now)
	switch {
	case r.Name == "":
		return r, nil, fmt.Errorf("the log in %q does not tell of any run yet", p.state)
	case r.Name != name:
		return r, nil, fmt.Errorf("the log in %q is of run %q, not of %q", p.state, r.Name, name)
	}
	if p.chain != "" {
		r.Chain = p.chain
	}
	if parsed, err := spec.Parse(p.text, all.Kinds()); err == nil {
		s = &parsed
	}
	return r, s, nil
}

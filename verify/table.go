package verify

import (
	"fmt"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/spec"
	judge "github.com/entrain-network/entrain/trace/referee"
)

// Rules returns the rules by which package referee judges a run's disputes, from the text of its
// specification. The error explains why it cannot.
func Rules(specText []byte) ([]byte, error) {
	s, err := spec.Parse(specText, all.Kinds())
	if err != nil {
		return nil, err
	}
	r, err := newRules(s)
	if err != nil {
		return nil, fmt.Errorf("this run has no referee: %w", err)
	}
	if !r.gradient {
		return nil, fmt.Errorf("the referee there judges steps up to their gradient, and with exchange.kind = %q a step ends with optimizer.codec = %q: use exchange.kind = %q",
			s.Exchange.Kind, s.Optimizer.Kind().Name, spec.ExchangeBucket)
	}
	return judge.Rules{
		Params: uint32(r.params), Manifest: r.manifest, Order: r.order, First: r.first, Base: r.base, Frozen: uint32(r.frozen),
		Table: r.model.AppendTable(nil, r.setup.Model.Layout()),
	}.Append(nil), nil
}

package audit

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/p2p/mem"
	"github.com/entrain-network/entrain/wire"
)

func TestAuditTellsWhatIsDifferent(t *testing.T) {
	result := engine.Result{Payload: []byte("payload"), Gradient: wire.Sum("test/gradient")}
	state := wire.Sum("test/state")
	ref := mem.NewRef(result.Payload)
	honest := dispute.Commitment{Round: 7, Member: 3, Payload: ref.Root, PayloadBytes: uint32(ref.Size), State: state, Work: dispute.WorkHash(wire.Hash{}, 7, 3, result.Gradient)}
	for _, v := range []struct {
		name   string
		change func(*dispute.Commitment)
		want   string
	}{
		{"an honest one", func(*dispute.Commitment) {}, ""},
		{"another payload", func(c *dispute.Commitment) { c.Payload[5]++ }, "its payload is not what it must be"},
		{"another length", func(c *dispute.Commitment) { c.PayloadBytes++ }, "its payload length is not what it must be"},
		{"another state", func(c *dispute.Commitment) { c.State[31]++ }, "its optimizer state is not what it must be"},
		{"another's work", func(c *dispute.Commitment) {
			c.Member++
			c.Work = dispute.WorkHash(wire.Hash{}, 7, 3, result.Gradient)
		}, "its gradient is not what it must be"},
	} {
		c := honest
		v.change(&c)
		var r Report
		r.compare(c, result, state, false)
		if r.Reason != v.want || (r.Verdict == Different) != (v.want != "") || len(r.Rows) != 4 {
			t.Errorf("%s: %q, %q", v.name, r.Verdict, r.Reason)
		}
		if r.Verdict == "" {
			r.Verdict = Equal
		}
		var text strings.Builder
		if err := r.Write(&text, false); err != nil || (v.want != "") != strings.Contains(text.String(), "claimed") {
			t.Errorf("%s: %v\n%s", v.name, err, text.String())
		}
	}
}

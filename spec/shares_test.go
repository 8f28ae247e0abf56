package spec

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

func TestSharesReachTheCoordinator(t *testing.T) {
	for text, want := range map[string]coordinator.Sharing{
		"": coordinator.EqualShares, "[batch]\nshares = \"equal\"\n": coordinator.EqualShares, "[batch]\nshares = \"speed\"\n": coordinator.SpeedShares,
	} {
		s, err := Parse([]byte("name = \"test\"\n"+text), all.Kinds())
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		limits, config := s.Coordinator(key.Public{1}, wire.Hash{1}, wire.Hash{1})
		if config.Sharing != want || limits.Speeds != (want == coordinator.SpeedShares) {
			t.Errorf("%q: the coordinator is told %v and %+v", text, config.Sharing, limits)
		}
		b, err := s.Append(nil)
		if err != nil || strings.Contains(string(b), "shares") != limits.Speeds {
			t.Errorf("%q is written, error %v, as\n%s", text, err, b)
		}
	}
	if _, err := Parse([]byte("name = \"test\"\n[batch]\nshares = \"fair\"\n"), all.Kinds()); err == nil || !strings.Contains(err.Error(), `batch.shares: "fair" is unknown; choose "equal" or "speed"`) {
		t.Errorf("unknown shares: %v", err)
	}
}

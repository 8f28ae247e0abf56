package adversary

import (
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
)

// TestAStubbornLiarConcedesWhereItsAccuserLies has the accuser's trace differ before the liar's own
// lie, so that the dispute descends to a place of which the liar has no tree. In campaign seed
// 900388 it panicked.
func TestAStubbornLiarConcedesWhereItsAccuserLies(t *testing.T) {
	s := &stubborn{ops: 300, op: 200, tile: 20, tiles: 40, slices: 40}
	for _, d := range []dispute.Dispute{
		{Level: dispute.LevelTiles, Op: 3, Depth: 2},
		{Level: dispute.LevelSlices, Op: 3, Tile: 20, Depth: 2},
		{Level: dispute.LevelSlices, Op: 200, Tile: 3, Depth: 2},
	} {
		d.ID, d.Stage, d.Accused, d.Accuser = 7, dispute.StageDescending, 1, 2
		m, err := s.Move(t.Context(), d, d.Accused)
		if want := (coordinator.Concede{Dispute: d.ID}); err != nil || m != want {
			t.Errorf("at %v, operation %d, tile %d it says %#v, %v", d.Level, d.Op, d.Tile, m, err)
		}
	}
}

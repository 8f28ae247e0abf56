package change

import (
	"bytes"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/internal/record"
)

// Urgent reports whether members should know of a change at once: something begins or ends, or a
// dispute has moved. Reports, verdicts, joins and payments can wait.
func Urgent(before, after coordinator.State) bool {
	if before.Phase() != after.Phase() || before.Round() != after.Round() || before.Epoch() != after.Epoch() {
		return true
	}
	if before.PausePending() != after.PausePending() || before.EndPending() != after.EndPending() || before.Closing() != after.Closing() {
		return true
	}
	l := layout(after.Limits())
	from, to := l.Disputes, l.Convictions+record.ConvictionsMax*record.ConvictionBytes
	return !bytes.Equal(before.Bytes()[from:to], after.Bytes()[from:to])
}

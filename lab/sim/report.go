package sim

import (
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/wire"
)

// Report is the result of a run.
type Report struct {
	Rounds    uint32            `json:"rounds"`
	Steps     uint32            `json:"steps"`
	Epochs    coordinator.Epoch `json:"epochs"`
	Rollbacks uint32            `json:"rollbacks"`
	Crashes   int               `json:"crashes"`
	Heals     int               `json:"heals"`
	Virtual   time.Duration     `json:"virtual_ns"`
	Params    wire.Hash         `json:"params"` // last agreed hash
	Log       wire.Hash         `json:"log"`    // of all events in order
	LossFirst float32           `json:"loss_first"`
	LossLast  float32           `json:"loss_last"`
	// loss of the final parameters on held-out text
	HeldOut float32 `json:"heldout"`
	Points  uint64  `json:"points"` // of all members
	// rounds, summed over honest participants, that one held other parameters than were agreed on
	Misled int `json:"misled,omitempty"`
	// honest participants with the agreed parameters at the end
	Holders int `json:"holders"`

	// With Verification:
	Convictions []Conviction `json:"convictions,omitempty"`
	// of more than an absence; never above 0
	HonestConvicted int `json:"honest_convicted"`
	// what the run counted against honest members that was not their fault; see inspectConduct
	Blameless int `json:"blameless,omitempty"`
	// adversaries with a provable cheat that were not convicted
	Undetected int        `json:"undetected,omitempty"`
	Checks     uint32     `json:"checks,omitempty"` // checks drawn
	Passed     uint32     `json:"passed,omitempty"` // checks passed
	Disputes   uint32     `json:"disputes,omitempty"`
	Exposures  []Exposure `json:"exposures,omitempty"`
}

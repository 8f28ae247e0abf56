// Package large computes what it takes to train a model that no member's machine holds, by the ways
// that docs/large.md compares: bytes and seconds of a step, memory, what a check of a result takes,
// and how few cheats spoil how much. It is arithmetic in floats.
//
// # Formulas
//
// With W weights, a batch of B sequences of T tokens, and S stages, which have W/S weights each:
//
//	operations of a step     6·W·B·T            Kaplan et al. 2020, arXiv 2001.08361
//	time of m sequences      (m + S - 1)·slot   Huang et al. 2019, GPipe, arXiv 1811.06965
//	boundary of a sequence   T·Hidden·bytes     Ryabinin et al. 2023, SWARM, arXiv 2301.11913
//	dense exchange           3·(4·W)            Rajbhandari et al. 2020, ZeRO stage 3, 1910.02054
//	layers from disk         3·(4·W) read,      Rajbhandari et al. 2021, ZeRO-Infinity, 2104.07857:
//	                         2·(4·W) written    the model twice, the state; both as they are next
//
// A slot is the time that a stage has one sequence: the longer of computing it forward and backward
// and of moving it over the boundaries, each way at once. Attention's products of queries, keys and
// values are left out: 4 % of a 70b model's operations with sequences of 4,096.
//
// If a part a of all members, drawn by chance, cheats, a share that k members compute one after
// another is right with probability (1-a)^k: the others compute with what one of them made wrong.
// If two compute each stage, and both have to agree, it is right with (1-a²)^k.
package large

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/founding"
	"github.com/entrain-network/entrain/llama"
)

// Model returns the shape of that name: a preset, or "70b", that of Llama 3 70B.
func Model(name string) (llama.Config, error) {
	if name == "70b" {
		return llama.Config{
			Vocab: 128256, Hidden: 8192, Layers: 80, Heads: 64, KVHeads: 8, HeadDim: 128, FFN: 28672, Context: 8192, Theta: 500000, Eps: 1e-5,
		}, nil
	}
	return llama.Preset(name)
}

// WeightBytes is the memory of a member that is checked, for each weight: parameters of this round
// and of the next, gradient, and optimizer states before and after.
const WeightBytes = 20

// Plan is a run that the ways are compared for.
type Plan struct {
	Model     llama.Config
	Machines  int     // that compute, all of them by each way
	Stages    int     // into which a group or a pipeline cuts the model, at most Model.Layers
	Sequences int     // of a batch
	Tokens    int     // of a sequence
	Speed     float64 // operations a second of a machine
	Link      float64 // bits a second of a member's link, each way
	Local     float64 // bits a second of a link within a group, each way
	Disk      float64 // bytes a second, read or written
}

// Fault returns an error that names what is out of its range.
func (p Plan) Fault() error {
	switch {
	case p.Stages < 1 || p.Stages > p.Model.Layers:
		return fmt.Errorf("stages: %d, want 1 to the %d layers", p.Stages, p.Model.Layers)
	case p.Machines < 2*p.Stages || p.Machines > 10_000:
		return fmt.Errorf("machines: %d, want two for each stage to 10,000", p.Machines)
	case p.Sequences < 1 || p.Tokens < 1 || p.Tokens > llama.MaxContext:
		return fmt.Errorf("sequences and tokens: %d and %d, want 1 or more, and at most %d tokens", p.Sequences, p.Tokens, llama.MaxContext)
	case !(min(p.Speed, p.Link, p.Local, p.Disk) > 0):
		return fmt.Errorf("speed, links and disk: %v, %v, %v and %v, want above 0", p.Speed, p.Link, p.Local, p.Disk)
	}
	return nil
}

// Way is one way to train, and what it takes of one member of the run: bytes and seconds of a step,
// or of the check of one result.
type Way struct {
	Name    string
	Members int     // of the run
	Share   int     // sequences of one share, at most
	Memory  float64 // of one machine, without activations
	Moved   float64 // received over the member's link; about as much is sent
	Read    float64 // from a machine's disk
	Written float64
	Compute float64 // seconds, if links and disks took none
	Step    float64 // seconds

	Inputs float64 // that a verifier fetches besides the state
	State  float64 // the optimizer state that the result began from
	Work   float64 // seconds of one machine

	Away     float64 // part of the shares that lose a machine if 1 % of all vanish
	Cheats   float64 // part of the members that make a third of the results wrong
	Twice    float64 // the same if two members compute each stage and have to agree, or 0
	Captured float64 // probability that 30 % of all are a quorum where some weight is held
}

// Sizes are a model's weights, and the bytes of a result and of an update.
type Sizes struct{ Weights, Result, Update float64 }

// Measure asks the codec for models of one and of two layers: each further layer adds as much as
// the second, and a codec for all 80 would take gigabytes.
func Measure(c llama.Config) (Sizes, error) {
	pool := exact.NewPool(1)
	defer pool.Close()
	var at [2][3]float64
	for i := range at {
		c := c
		c.Layers = i + 1
		codec, err := distro.New(c.Layout(), distro.Config{Block: 64, TopK: 8, Decay: 0.95, WeightDecay: 0.1, ClipNorm: 1}, pool)
		if err != nil {
			return Sizes{}, err
		}
		at[i] = [3]float64{float64(c.Layout().Len()), float64(codec.PayloadMax()), float64(codec.UpdateLen())}
	}
	whole := func(k int) float64 { return at[0][k] + float64(c.Layers-1)*(at[1][k]-at[0][k]) }
	return Sizes{whole(0), whole(1), whole(2)}, nil
}

// Bytes of an element of a boundary: binary32; blocks of 32 bytes and a scale, as exact8 has them;
// and binary32 in a subspace of a hundredth of the dimensions, as in Protocol Models (Ramasinghe et
// al. 2025, arXiv 2506.01260).
const (
	wide     = 4
	narrow   = 33.0 / 32
	subspace = 4.0 / 100
)

// boundary returns the bytes of a sequence at a boundary, each way.
func (p Plan) boundary(bytes float64) float64 { return float64(p.Tokens*p.Model.Hidden) * bytes }

// Ways computes all ways for a plan without a fault and a model of these sizes.
func (p Plan) Ways(z Sizes) []Way {
	weights, groups := z.Weights, p.Machines/p.Stages
	// exchange is what a member receives of n results of the k-th part of the model.
	exchange := func(n int, k float64) float64 { return min(float64(n-1)*z.Result, z.Update) / k }
	// way returns what follows from how many members and machines a share needs, one after another.
	way := func(name string, members, needs, machines int) Way {
		shares := p.Machines / machines
		w := Way{Name: name, Members: members, Share: (p.Sequences + shares - 1) / shares}
		w.Work = float64(w.Share) * 6 * weights / float64(needs) * float64(p.Tokens) / p.Speed
		w.State = 4 * weights / float64(needs)
		w.Away = 1 - math.Pow(0.99, float64(machines))
		w.Cheats = 1 - math.Pow(2.0/3, 1/float64(needs))
		w.Captured = captured(members, needs)
		return w
	}
	// line is the time of a share in s stages whose slot takes c to compute and t to move.
	line := func(w Way, s int, c, t float64) float64 { return float64(w.Share+s-1) * max(c, t) }
	slot := func(stages int) float64 { return 6 * weights / float64(stages) * float64(p.Tokens) / p.Speed }
	seconds := func(bytes, bits float64) float64 { return bytes * 8 / bits }

	group := way("groups", groups, 1, p.Stages)
	group.Memory = WeightBytes * weights / float64(p.Stages)
	group.Moved = exchange(groups, 1)
	group.Compute = line(group, p.Stages, slot(p.Stages), 0)
	inside := line(group, p.Stages, slot(p.Stages), seconds(2*p.boundary(wide), p.Local))
	group.Step = max(inside, seconds(group.Moved, p.Link))

	disk := way("layers from disk", p.Machines, 1, 1)
	disk.Memory = WeightBytes * weights / float64(p.Model.Layers)
	disk.Moved = exchange(p.Machines, 1)
	disk.Compute = line(disk, 1, slot(1), 0)
	// What a sequence leaves at each layer is written on the way forward, and read on the way back.
	left := float64(disk.Share*p.Model.Layers) * p.boundary(wide)
	disk.Read, disk.Written = 3*4*weights+left, 2*4*weights+left
	disk.Step = max(disk.Compute, seconds(disk.Moved, p.Link), (disk.Read+disk.Written)/p.Disk)
	list := []Way{group, disk}

	for _, b := range []struct {
		name  string
		bytes float64
	}{{"pipeline", wide}, {"pipeline, 8 bits", narrow}, {"pipeline, subspace", subspace}} {
		w := way(b.name, p.Machines, p.Stages, p.Stages)
		w.Memory = WeightBytes * weights / float64(p.Stages)
		crossing := 2 * p.boundary(b.bytes) // activations one way, their gradients the other
		w.Moved = float64(w.Share)*crossing + exchange(groups, float64(p.Stages))
		w.Inputs = float64(w.Share) * crossing
		w.Twice = math.Sqrt(w.Cheats)
		w.Compute = line(w, p.Stages, slot(p.Stages), 0)
		w.Step = max(line(w, p.Stages, slot(p.Stages), seconds(crossing, p.Link)), seconds(w.Moved, p.Link))
		list = append(list, w)
	}

	dense := way("sharded optimizer", p.Machines, 1, 1)
	dense.Memory = WeightBytes*weights/float64(p.Machines) + 8*weights/float64(p.Model.Layers)
	dense.Moved = 3 * 4 * weights
	fetched := dense
	fetched.Name = "layers from owners"
	fetched.Moved = 2*4*weights + z.Result // its part of every result is one result
	for _, w := range []Way{dense, fetched} {
		w.Compute = line(w, 1, slot(1), 0)
		w.Step = max(w.Compute, seconds(w.Moved, p.Link))
		w.Captured = captured(p.Machines, p.Machines/2) // two owners of each slice
		list = append(list, w)
	}
	return list
}

// captured returns a bound on the probability that members that collude, 30 % of all, are a quorum
// of the members of some of the parts into which a draw divides them. With one part, 32 witnesses
// are drawn and have to be captured twice in a row.
func captured(members, parts int) float64 {
	c := founding.Committee{Members: uint32(members), Colluding: uint32(members * 3 / 10), Witnesses: uint32(members / parts)}
	if parts == 1 {
		c.Witnesses = uint32(min(32, members))
		return c.Settled(1, 2)
	}
	return min(1, float64(parts)*c.Captured())
}

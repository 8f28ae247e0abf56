package vulkan

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
)

// Devices are what computes a model: the first has the embedding, the first layers and the head,
// the others the layers behind those.
type Devices []*Device

// Close releases all devices.
func (all Devices) Close() {
	for _, d := range all {
		d.Close()
	}
}

// String describes the devices in a line.
func (all Devices) String() string {
	var names []string
	for _, d := range all {
		names = append(names, d.String())
	}
	return strings.Join(names, " and ")
}

// Computer is a model on one device or several.
type Computer interface {
	cpu.Model
	Memory() uint64       // bytes that it takes of the devices' memories
	Traffic() gpu.Traffic // what has gone to the devices, and come from them
	Close()
}

// NewModel returns the model that computes on the devices, as Device.NewModel does for one, or as
// NewAdapted where cfg has adapters of a model with the parameters frozen. Several compute the
// whole model, merged with adapters by the processors, to which they also leave the codec.
func (all Devices) NewModel(cfg llama.Config, frozen []float32, seq, most int, inner bool, c codec.Codec) (Computer, error) {
	if len(all) > 1 {
		return newPipeline(all, cfg.Base(), seq, most, inner)
	}
	if frozen != nil {
		return all[0].NewAdapted(cfg, frozen, seq, most, inner, c)
	}
	return all[0].NewModel(cfg, seq, most, inner, c)
}

// pipeline is a Model whose layers are on several devices. Each has its layers' parameters and
// their gradients, and computes the passes in order, so that each chain of additions is that of one
// device. While one device computes a pass, others compute the passes before and after it.
//
// To split sequences among devices would not do: the gradient of a weight is one chain over all
// tokens, of which nobody can compute the second half without the first.
type pipeline struct {
	sizes
	name   string
	stages []*Model    // that of the first device is outer
	pool   *exact.Pool // with inner steps, and grad, that of all devices
	grad   []float32
}

func newPipeline(all Devices, cfg llama.Config, seq, most int, inner bool) (*pipeline, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if len(all) > cfg.Layers {
		return nil, fmt.Errorf("vulkan: %d devices for the %d layers of the model, at most one for each", len(all), cfg.Layers)
	}
	p := &pipeline{sizes: newSizes(cfg, seq, most, inner, nil), name: all.String()}
	if cfg.Tied { // otherwise the head's gradients would come before all of the embedding's
		p.sequences = 1
	}
	if inner {
		p.grad, p.pool = make([]float32, cfg.Layout().Len()), exact.NewPool(min(runtime.GOMAXPROCS(0), exact.MaxWorkers))
	}
	speeds, err := all.speeds(cfg.Numerics)
	if err != nil {
		p.Close()
		return nil, err
	}
	first := 0
	for i, layers := range split(cfg, speeds) {
		s := p.sizes
		s.first, s.end, s.outer = first, first+layers, i == 0
		s.slots = len(all) + 1
		s.sequences = min(p.sequences, passSize(most, len(all)))
		m, err := newStage(all[i].k, s)
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("layers %d to %d on %v: %w", first, s.end-1, all[i], err)
		}
		first, p.stages, p.sequences = s.end, append(p.stages, m), m.sequences
	}
	for _, m := range p.stages {
		m.sequences = p.sequences // the least that fit
	}
	return p, nil
}

// passSize returns how many of n sequences a pass takes. With four passes for each device, a device
// waits for the first pass, and at the end for the last, for less than a fifth of the time.
func passSize(n, devices int) int { return (n + 4*devices - 1) / (4 * devices) }

// speeds measures products of numerics on the devices. Those of one name are equally fast.
func (all Devices) speeds(n llama.Numerics) (speeds []float64, err error) {
	of := map[string]float64{}
	for _, d := range all {
		if of[d.Name] == 0 {
			if of[d.Name], err = d.Speed(n); err != nil {
				return nil, err
			}
		}
		speeds = append(speeds, of[d.Name])
	}
	return speeds, nil
}

// split returns the number of layers of each device, so that all compute for about the same time at
// their speeds. The first has the head too.
func split(cfg llama.Config, speeds []float64) []int {
	t := cfg.Layout().Tensors()
	head := float64(cfg.Vocab * cfg.Hidden)
	layer := (float64(cfg.Layout().Len()) - head) / float64(cfg.Layers)
	if !cfg.Tied {
		layer -= float64(t[0].Len) / float64(cfg.Layers) // the embedding takes no time
	}
	all, sum := 0.0, 0.0
	for _, s := range speeds {
		all += s
	}
	counts, from := make([]int, len(speeds)), 0
	for i, s := range speeds {
		sum += s
		end := int(math.Round(((layer*float64(cfg.Layers)+head)*sum/all - head) / layer))
		end = min(max(end, from+1), cfg.Layers-(len(speeds)-1-i))
		counts[i], from = end-from, end
	}
	return counts
}

// each calls f for all devices at once.
func (p *pipeline) each(f func(m *Model) error) error {
	failed := make([]error, len(p.stages))
	var wait sync.WaitGroup
	for i, m := range p.stages {
		wait.Go(func() { failed[i] = f(m) })
	}
	wait.Wait()
	return errors.Join(failed...)
}

// Close frees the devices' memory.
func (p *pipeline) Close() {
	for _, m := range p.stages {
		m.Close()
	}
	if p.pool != nil {
		p.pool.Close()
	}
}

// String returns what computes.
func (p *pipeline) String() string { return p.name }

// Memory implements Computer.
func (p *pipeline) Memory() (n uint64) {
	for _, m := range p.stages {
		n += m.Memory()
	}
	return n
}

// Traffic implements Computer.
func (p *pipeline) Traffic() (t gpu.Traffic) {
	for _, m := range p.stages {
		t = t.Plus(m.Traffic())
	}
	return t
}

// Start implements cpu.Model.
func (p *pipeline) Start(params []float32, version uint64, gradient bool) error {
	return p.each(func(m *Model) error { return m.Start(params, version, gradient) })
}

// Patch implements cpu.Patcher.
func (p *pipeline) Patch(params []float32, version, next uint64, ranges []codec.Range) error {
	return p.each(func(m *Model) error { return m.Patch(params, version, next, ranges) })
}

// Grad implements cpu.Model.
func (p *pipeline) Grad(tokens []uint32, n, total int) (float32, error) {
	return p.run(tokens, n, 1/(float32(total)*float32(p.seq)), true)
}

// Loss implements cpu.Model.
func (p *pipeline) Loss(tokens []uint32, n int) (float32, error) { return p.run(tokens, n, 1, false) }

// Gradient implements cpu.Model.
func (p *pipeline) Gradient(grad []float32) error {
	if err := p.each(func(m *Model) error { return m.m.ownGrad.read(grad) }); err != nil {
		return err
	}
	return p.finite(grad)
}

// Moments implements cpu.Model.
func (p *pipeline) Moments(mean, square []float32) error {
	return p.each(func(m *Model) error { return m.Moments(mean, square) })
}

// Norm implements cpu.Model. A segment of the norm may lie on two devices, so it is computed here.
func (p *pipeline) Norm() (float64, error) {
	if err := p.Gradient(p.grad); err != nil {
		return 0, err
	}
	return codec.Norm(p.pool, p.grad), nil
}

// Update implements cpu.Model.
func (p *pipeline) Update(clip float32, s exact.AdamWStep) error {
	return p.each(func(m *Model) error { return m.Update(clip, s) })
}

// Updated implements cpu.Model.
func (p *pipeline) Updated(params, mean, square []float32) error {
	return p.each(func(m *Model) error { return m.Updated(params, mean, square) })
}

// A task is a stage of a pass that a device can compute: it has what the stage begins with.
type task struct {
	stage stage
	pass  int
	x     []float32 // rows of numbers, or nil for the first stage
}

// A running is the passes of one call.
type running struct {
	*pipeline
	tokens   [][]uint32 // of each pass
	weight   float32
	backward bool
	boxes    []chan task // of the devices
	results  [][]float32 // of each pass
	finished chan struct{}
	end      sync.Once
	failed   error
}

// run computes passes over n sequences.
func (p *pipeline) run(tokens []uint32, n int, weight float32, backward bool) (float32, error) {
	if err := p.check(tokens, n); err != nil || n == 0 {
		return 0, err
	}
	r := &running{pipeline: p, weight: weight, backward: backward, finished: make(chan struct{})}
	size := min(p.sequences, passSize(n, len(p.stages)))
	for from := 0; from < n; from += size {
		r.tokens = append(r.tokens, tokens[from*(p.seq+1):min(from+size, n)*(p.seq+1)])
	}
	r.results = make([][]float32, len(r.tokens))
	for range p.stages {
		r.boxes = append(r.boxes, make(chan task, 3*len(r.tokens))) // all that ever comes
	}
	for pass := range min(len(r.tokens), p.slotCount()) {
		r.boxes[0] <- task{layersOn, pass, nil}
	}
	var wait sync.WaitGroup
	for i := range p.stages {
		wait.Go(func() { r.work(i) })
	}
	wait.Wait()
	if r.failed != nil {
		return 0, r.failed
	}
	return p.mean(tokens, r.results)
}

func (p *pipeline) slotCount() int { return p.stages[0].slots }

// stop ends the call.
func (r *running) stop(err error) {
	r.end.Do(func() {
		r.failed = err
		close(r.finished)
	})
}

// work computes what comes for device i, in the order in which it comes, which for each stage is
// that of the passes.
func (r *running) work(i int) {
	var held []task // losses that wait for the pass before
	done := 0       // passes
	for {
		var t task
		select {
		case <-r.finished:
			return
		case t = <-r.boxes[i]:
		}
		// With a tied head the gradients of head and embedding are one chain: pass after pass.
		if t.stage == lossOf && r.backward && r.Tied && t.pass > done {
			held = append(held, t)
			continue
		}
		if err := r.compute(i, t); err != nil {
			r.stop(err)
			return
		}
		if i > 0 || t.stage != r.lastStage() {
			continue
		}
		done++
		if done == len(r.tokens) {
			r.stop(nil)
			return
		}
		if next := t.pass + r.slotCount(); next < len(r.tokens) {
			r.boxes[0] <- task{layersOn, next, nil}
		}
		for _, t := range held { // of which one may now go
			r.boxes[0] <- t
		}
		held = nil
	}
}

// lastStage returns the stage with which a pass ends on the first device.
func (r *running) lastStage() stage {
	if r.backward {
		return layersBack
	}
	return lossOf
}

// compute computes a task on device i, and passes the outcome on.
func (r *running) compute(i int, t task) error {
	m, tokens := r.stages[i], r.tokens[t.pass]
	s := shape{t.stage, t.pass % r.slotCount(), len(tokens) / (r.seq + 1), r.backward}
	x, results, err := m.computeStage(s, tokens, r.weight, t.x)
	if err != nil {
		return err
	}
	switch {
	case t.stage == layersOn && i+1 < len(r.stages):
		r.boxes[i+1] <- task{layersOn, t.pass, x}
	case t.stage == layersOn:
		r.boxes[0] <- task{lossOf, t.pass, x}
	case t.stage == lossOf:
		r.results[t.pass] = results
		if r.backward {
			r.boxes[len(r.stages)-1] <- task{layersBack, t.pass, x}
		}
	case i > 0:
		r.boxes[i-1] <- task{layersBack, t.pass, x}
	}
	return nil
}

// computeStage computes a stage of a pass from x, what the stage before has left, to what the next
// one needs.
func (m *Model) computeStage(s shape, tokens []uint32, weight float32, x []float32) (out, results []float32, err error) {
	m.m.slot = m.m.slots[s.slot]
	c, err := m.recorded(s)
	if err != nil {
		return nil, nil, err
	}
	n := s.sequences * m.seq * m.Hidden
	in, to := m.m.layers[0].x, m.m.out
	switch {
	case s.stage == lossOf:
		in, to = m.m.last, m.m.dx
	case s.stage == layersBack:
		in, to = m.m.dx, m.m.dx
	case m.outer:
		err = gpu.Write(m.m.tokens, m.input(tokens, weight))
	}
	if err == nil && x != nil {
		err = gpu.Write(in, x)
	}
	if err == nil {
		err = c.Run()
	}
	if err == nil && s.stage == lossOf {
		results = make([]float32, 2*s.sequences*m.seq)
		err = gpu.Read(results, m.m.results)
	}
	if err == nil && (s.stage != lossOf || s.backward) && (s.stage != layersBack || !m.outer) {
		out = make([]float32, n)
		err = gpu.Read(out, to)
	}
	if err == nil && s.stage == layersBack {
		err = m.audit(s.sequences)
		m.fresh = false
	}
	return out, results, err
}

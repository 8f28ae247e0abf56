package trace

import (
	"slices"

	"github.com/entrain-network/entrain/llama"
)

// layerOps and headOps are the numbers of operations of a layer and of each of its query heads;
// biasOps are those that biases add to a layer, and normOps those that a norm of its own adds to
// each head of queries or keys, and its gains to a layer.
const (
	layerOps = 35
	headOps  = 13
	biasOps  = 6
	normOps  = 5
)

// sequenceOps returns the most operations of a sequence.
func sequenceOps(c llama.Config) int {
	ops := layerOps + headOps*c.Heads
	if c.Bias {
		ops += biasOps
	}
	if c.QKNorm {
		ops += normOps * (c.Heads + c.KVHeads)
	}
	return c.Layers * ops
}

// layerValues are the values of a layer that its backward pass reads.
type layerValues struct {
	x, inv1, h1, q, k, v value
	plainQ, plainK       value   // before the norms of heads
	invQ, invK           []value // of each head
	shift, inverse       []value // of each query head's scores
	out                  []value // of each query head
	x2, inv2, h2         value
	gate, up, middle     value
}

// layerTensor is a tensor of a layer. The list is in the order of llama's layout; a model need not
// have all of them.
type layerTensor int

const (
	norm1Tensor layerTensor = iota
	qTensor
	kTensor
	vTensor
	qBias
	kBias
	vBias
	qNorm
	kNorm
	oTensor
	norm2Tensor
	gateTensor
	upTensor
	downTensor
)

// layerGrid is a tensor of a layer, cut into tiles.
type layerGrid struct {
	tensor layerTensor
	grid   grid
}

// layerGrids lists a layer's tensors.
func (b *builder) layerGrids() []layerGrid {
	row := func(d dim) grid { return grid{rows: whole(1), cols: d} }
	list := []layerGrid{{norm1Tensor, row(b.hidden)},
		{qTensor, grid{rows: b.q, cols: b.hidden}}, {kTensor, grid{rows: b.kv, cols: b.hidden}}, {vTensor, grid{rows: b.kv, cols: b.hidden}}}
	if b.cfg.Bias {
		list = append(list, layerGrid{qBias, row(b.q)}, layerGrid{kBias, row(b.kv)}, layerGrid{vBias, row(b.kv)})
	}
	if b.cfg.QKNorm {
		list = append(list, layerGrid{qNorm, row(b.head)}, layerGrid{kNorm, row(b.head)})
	}
	return append(list, layerGrid{oTensor, grid{rows: b.hidden, cols: b.q}}, layerGrid{norm2Tensor, row(b.hidden)},
		layerGrid{gateTensor, grid{rows: b.middle, cols: b.hidden}}, layerGrid{upTensor, grid{rows: b.middle, cols: b.hidden}},
		layerGrid{downTensor, grid{rows: b.hidden, cols: b.middle}})
}

// tensor returns the index of a tensor of the current layer in the layout.
func (b *builder) tensor(t layerTensor) int {
	i := slices.IndexFunc(b.perLayer, func(g layerGrid) bool { return g.tensor == t })
	return 1 + b.layer*len(b.perLayer) + i
}

func (b *builder) param(t layerTensor) value { return b.params[b.tensor(t)] }
func (b *builder) eight() bool               { return b.cfg.Numerics == llama.Exact8 }
func (b *builder) normTensor() int           { return 1 + b.cfg.Layers*len(b.perLayer) }
func (b *builder) residual() grid            { return grid{rows: b.tokens, cols: b.hidden} }
func (b *builder) square() grid {
	return grid{rows: b.tokens, cols: b.tokens, causal: true, window: b.cfg.Window}
}
func (b *builder) headTensor() (t int) {
	if b.cfg.Tied {
		return 0
	}
	return b.normTensor() + 1
}

// add appends an operation and returns its value.
func (b *builder) add(what string, head int, g grid, k kernel) value {
	b.nodes = append(b.nodes, node{k, label{what, b.layer, head}})
	return value{ref: ref(len(b.nodes) - 1), grid: g}
}

// earlier returns the operation of the preceding sequence that corresponds to the one listed next.
func (b *builder) earlier() ref { return ref(len(b.nodes) - b.size) }

// sequence lists the operations of a sequence.
func (b *builder) sequence(size int) []node {
	b.nodes, b.size, b.layer = nil, size, -1
	b.grads = make([]ref, len(b.params))
	tokens := b.add("tokens", -1, grid{}, &tokens{b.tokens}).ref
	x := b.add("embedding", -1, b.residual(), &lookup{out: b.residual(), tokens: tokens, table: b.params[0], start: none})
	layers := make([]layerValues, b.cfg.Layers)
	for l := range layers {
		b.layer = l
		x = b.forward(&layers[l], x)
	}
	b.layer = -1
	dx := b.loss(x, tokens)
	for l := len(layers) - 1; l >= 0; l-- {
		b.layer = l
		dx = b.backward(&layers[l], dx)
	}
	b.layer = -1
	if b.trained != 0 {
		return b.nodes
	}
	start := b.earlier()
	if b.cfg.Tied {
		start = b.grads[0] // the part from the head comes first
	}
	b.grads[0] = b.add("gradient of the embedding", -1, b.grids[0], &scatter{out: b.grids[0], tokens: tokens, x: dx, start: start}).ref
	return b.nodes
}

// linear returns x·wᵀ, added to start unless that is none.
func (b *builder) linear(what string, x operand, w value, start ref) value {
	g := grid{rows: b.tokens, cols: w.grid.rows}
	return b.add(what, -1, g, &product{out: g, a: x, b: one(w).t(), depth: w.grid.cols.tiles(), start: start, eight: b.eight()})
}

// linearInput returns dy·w.
func (b *builder) linearInput(what string, dy, w operand) value {
	inner, cols := 0, w.parts[0].grid.cols
	for _, p := range w.parts {
		inner += p.grid.rows.tiles()
	}
	g := grid{rows: b.tokens, cols: cols}
	return b.add(what, -1, g, &product{out: g, a: dy, b: w, depth: inner, start: none, eight: b.eight()})
}

// target returns the bit of a matrix of a layer in llama.Targets, 0 for what is none.
func (t layerTensor) target() llama.Targets {
	i := slices.Index([]layerTensor{qTensor, kTensor, vTensor, oTensor, gateTensor, upTensor, downTensor}, t)
	if i < 0 {
		return 0
	}
	return 1 << i
}

// trains reports whether the gradient of a tensor of a layer is needed.
func (b *builder) trains(t layerTensor) bool { return b.trained == 0 || b.trained&t.target() != 0 }

// layerWeight is linearWeight for a matrix of the current layer, if its gradient is needed.
func (b *builder) layerWeight(what string, t layerTensor, dy, x operand) {
	if b.trains(t) {
		b.linearWeight(what, b.tensor(t), dy, x, b.earlier())
	}
}

// linearWeight adds dyᵀ·x to the gradient of a tensor, which the previous sequence left in start.
func (b *builder) linearWeight(what string, tensor int, dy, x operand, start ref) {
	g := b.grids[tensor]
	b.grads[tensor] = b.add(what, -1, g, &product{out: g, a: dy.t(), b: x, depth: b.tokens.tiles(), start: start, eight: b.eight()}).ref
}

// norm returns the RMSNorm of x and the rows' 1/rms; head is -1, or the head that x is.
func (b *builder) norm(what string, head int, x, gains value) (inv, y value) {
	inv = b.add("1/rms of "+what, head, grid{}, &reduction{function: rms, x: x, constant: b.cfg.Eps})
	y = b.add("norm of "+what, head, x.grid, &elementwise{function: normalize, out: x.grid, m: []value{x}, v: []ref{inv.ref}, gains: gains.ref})
	return inv, y
}

// normBackward adds the gradient of a norm's gains, and returns dx plus the gradient of its input.
// dx may be none, for 0.
func (b *builder) normBackward(what string, tensor int, dx, dy, x, inv value) value {
	gains := b.params[tensor]
	slope := b.add("slope of the norm of "+what, -1, grid{}, &reduction{function: normSlope, x: dy, y: x, gains: gains, rows: inv.ref})
	if b.trained == 0 {
		b.grads[tensor] = b.add("gradient of the gains of "+what, -1, gains.grid,
			&gain{[]value{dy}, []value{x}, []ref{inv.ref}, gains.grid, b.earlier()}).ref
	}
	return b.add("gradient of "+what, -1, x.grid, &elementwise{
		function: normGradient, out: x.grid, m: []value{dx, dy, x}, v: []ref{inv.ref, slope.ref}, gains: gains.ref,
	})
}

// forward lists a layer's operations and returns its output.
func (b *builder) forward(l *layerValues, x value) value {
	l.x = x
	l.inv1, l.h1 = b.norm("the attention's input", -1, x, b.param(norm1Tensor))
	q := b.linear("queries", one(l.h1), b.param(qTensor), none)
	k := b.linear("keys", one(l.h1), b.param(kTensor), none)
	l.v = b.linear("values", one(l.h1), b.param(vTensor), none)
	if b.cfg.Bias {
		q, k, l.v = b.bias("queries", q, qBias), b.bias("keys", k, kBias), b.bias("values", l.v, vBias)
	}
	turnedQ, turnedK := beside(q), beside(k)
	if b.cfg.QKNorm {
		l.plainQ, l.plainK = q, k
		turnedQ, l.invQ = b.headNorms("queries", q, qNorm)
		turnedK, l.invK = b.headNorms("keys", k, kNorm)
	}
	l.q = b.turn("turned queries", turnedQ, q.grid, false)
	l.k = b.turn("turned keys", turnedK, k.grid, false)
	for h := range b.cfg.Heads {
		kv := h / (b.cfg.Heads / b.cfg.KVHeads)
		scores := b.scores("scores", h, l)
		l.shift = append(l.shift, b.add("shift of the scores", h, grid{}, &reduction{function: shift, x: scores, constant: b.scale}))
		l.inverse = append(l.inverse, b.add("inverse of the sum", h, grid{},
			&reduction{function: share, x: scores, rows: l.shift[h].ref, scale: b.scale, constant: 1}))
		p := b.probabilities("probabilities", h, l, scores)
		g := grid{rows: b.tokens, cols: b.head}
		l.out = append(l.out, b.add("attention", h, g,
			&product{out: g, a: one(p), b: l.v.head(kv), depth: b.tokens.tiles(), inner: upToRow, start: none}))
	}
	l.x2 = b.linear("residual stream after attention", beside(l.out...), b.param(oTensor), x.ref)
	l.inv2, l.h2 = b.norm("the feed-forward's input", -1, l.x2, b.param(norm2Tensor))
	l.gate = b.linear("gate", one(l.h2), b.param(gateTensor), none)
	l.up = b.linear("up", one(l.h2), b.param(upTensor), none)
	l.middle = b.add("gated", -1, l.gate.grid, &elementwise{function: swiglu, out: l.gate.grid, m: []value{l.gate, l.up}, gains: none})
	return b.linear("residual stream after the feed-forward", one(l.middle), b.param(downTensor), l.x2.ref)
}

// bias adds a bias to each row of x.
func (b *builder) bias(what string, x value, t layerTensor) value {
	return b.add(what+" with their bias", -1, x.grid, &elementwise{function: addRow, out: x.grid, m: []value{x}, gains: b.param(t).ref})
}

// biasBackward adds the gradient of a bias.
func (b *builder) biasBackward(what string, t layerTensor, dy operand) {
	tensor := b.tensor(t)
	g := b.grids[tensor]
	b.grads[tensor] = b.add(what, -1, g, &columnSum{dy: dy, rows: b.tokens, out: g, start: b.earlier()}).ref
}

// headNorms returns the norm of each head of x, side by side, and the heads' 1/rms.
func (b *builder) headNorms(what string, x value, t layerTensor) (out operand, inv []value) {
	var heads []value
	for h := range x.grid.cols.groups {
		i, y := b.norm(what, h, x.group(h), b.param(t))
		heads, inv = append(heads, y), append(inv, i)
	}
	return beside(heads...), inv
}

// headNormsBackward adds the gradient of the gains, and returns the gradient of the input x of
// headNorms, given that of its output.
func (b *builder) headNormsBackward(what string, t layerTensor, dy, x value, inv []value) operand {
	tensor := b.tensor(t)
	gains := b.params[tensor]
	sum := &gain{out: gains.grid}
	var out []value
	for h := range inv {
		dyh, xh := dy.group(h), x.group(h)
		slope := b.add("slope of the norm of "+what, h, grid{}, &reduction{function: normSlope, x: dyh, y: xh, gains: gains, rows: inv[h].ref})
		out = append(out, b.add("gradient of "+what+" before their norm", h, xh.grid, &elementwise{
			function: normGradient, out: xh.grid, m: []value{{ref: none}, dyh, xh}, v: []ref{inv[h].ref, slope.ref}, gains: gains.ref,
		}))
		sum.x, sum.y, sum.inv = append(sum.x, dyh), append(sum.y, xh), append(sum.inv, inv[h].ref)
	}
	if b.trained == 0 {
		sum.start = b.earlier()
		b.grads[tensor] = b.add("gradient of the gains of "+what, -1, gains.grid, sum).ref
	}
	return beside(out...)
}

func (b *builder) turn(what string, x operand, g grid, back bool) value {
	return b.add(what, -1, g, &rotation{x: x, out: g, angles: b.angles, back: back})
}

// scores returns a query head's products of queries and keys.
func (b *builder) scores(what string, h int, l *layerValues) value {
	kv := h / (b.cfg.Heads / b.cfg.KVHeads)
	return b.add(what, h, b.square(), &product{
		out: b.square(), a: l.q.head(h), b: l.k.head(kv).t(), depth: b.head.tiles(), start: none,
	})
}

func (b *builder) probabilities(what string, h int, l *layerValues, scores value) value {
	return b.add(what, h, scores.grid, &elementwise{
		function: probability, out: scores.grid, m: []value{scores}, v: []ref{l.shift[h].ref, l.inverse[h].ref}, gains: none, scale: b.scale,
	})
}

// loss lists the last norm, the head and their gradients, and returns the gradient of the last
// layer's output.
func (b *builder) loss(x value, tokens ref) value {
	what := "the head's input"
	inv, h := b.norm(what, -1, x, b.params[b.normTensor()])
	head := b.headTensor()
	logits := b.linear("logits", one(h), b.params[head], none)
	most := b.add("greatest logit", -1, grid{}, &reduction{function: shift, x: logits, constant: 1})
	parts := b.add("share of a likelihood", -1, grid{}, &reduction{function: share, x: logits, rows: most.ref, scale: 1})
	dh := b.headBackward(head, logits, h, most.ref, parts.ref, tokens)
	return b.normBackward(what, b.normTensor(), value{ref: none}, dh, x, inv)
}

// headBackward lists the gradients of the head and of its input h, and returns the latter.
func (b *builder) headBackward(head int, logits, h value, most, parts, tokens ref) value {
	gradient := &elementwise{function: logitGradient, out: logits.grid, m: []value{logits}, v: []ref{most, parts, tokens}, gains: none}
	if b.eight() { // the targets' part stays out of the products
		gradient.function = logitShare
	}
	dlogits := b.add("gradient of the logits", -1, logits.grid, gradient)
	dh := b.linearInput("gradient of the head's norm", one(dlogits), one(b.params[head]))
	if b.eight() {
		dh = b.add("gradient of the head's norm with the targets", -1, dh.grid, &lookup{out: dh.grid, tokens: tokens, table: b.params[head], start: dh.ref})
	}
	if b.trained != 0 {
		return dh
	}
	start := b.earlier()
	switch {
	case b.cfg.Tied: // the last operation of the previous sequence has the gradient
		start = -1
	case b.eight(): // the operation after the next has it
		start++
	}
	b.linearWeight("gradient of the head", head, one(dlogits), one(h), start)
	if b.eight() {
		g := b.grids[head]
		b.grads[head] = b.add("gradient of the head with the targets", -1, g, &scatter{out: g, tokens: tokens, x: h, start: b.grads[head], targets: true}).ref
	}
	return dh
}

// backward lists a layer's backward pass. dx is the gradient of its output; the result is that of
// its input.
func (b *builder) backward(l *layerValues, dx value) value {
	dmiddle := b.linearInput("gradient of gated", one(dx), one(b.param(downTensor)))
	gated := []value{l.gate, l.up, dmiddle}
	dgate := b.add("gradient of gate", -1, l.gate.grid, &elementwise{function: gateGradient, out: l.gate.grid, m: gated, gains: none})
	dup := b.add("gradient of up", -1, l.up.grid, &elementwise{function: upGradient, out: l.up.grid, m: gated, gains: none})
	b.layerWeight("gradient of down_proj", downTensor, one(dx), one(l.middle))
	b.layerWeight("gradient of gate_proj", gateTensor, one(dgate), one(l.h2))
	b.layerWeight("gradient of up_proj", upTensor, one(dup), one(l.h2))
	dh := b.linearInput("gradient of the feed-forward's norm", beside(dgate, dup), below(b.param(gateTensor), b.param(upTensor)))
	dx = b.normBackward("the feed-forward's input", b.tensor(norm2Tensor), dx, dh, l.x2, l.inv2)

	b.layerWeight("gradient of o_proj", oTensor, one(dx), beside(l.out...))
	dout := b.linearInput("gradient of attention", one(dx), one(b.param(oTensor)))
	turnedQ, turnedK, dv := b.attentionBackward(l, dout)
	dq := b.turn("gradient of queries", beside(turnedQ...), l.q.grid, true)
	dk := b.turn("gradient of keys", beside(turnedK...), l.k.grid, true)
	gradQ, gradK, gradV := one(dq), one(dk), beside(dv...)
	if b.cfg.QKNorm {
		gradQ = b.headNormsBackward("queries", qNorm, dq, l.plainQ, l.invQ)
		gradK = b.headNormsBackward("keys", kNorm, dk, l.plainK, l.invK)
	}
	if b.cfg.Bias && b.trained == 0 {
		b.biasBackward("gradient of the queries' bias", qBias, gradQ)
		b.biasBackward("gradient of the keys' bias", kBias, gradK)
		b.biasBackward("gradient of the values' bias", vBias, gradV)
	}
	b.layerWeight("gradient of q_proj", qTensor, gradQ, one(l.h1))
	b.layerWeight("gradient of k_proj", kTensor, gradK, one(l.h1))
	b.layerWeight("gradient of v_proj", vTensor, gradV, one(l.h1))
	gradQ.parts = append(append(gradQ.parts, gradK.parts...), gradV.parts...)
	dh = b.linearInput("gradient of the attention's norm", gradQ,
		below(b.param(qTensor), b.param(kTensor), b.param(vTensor)))
	return b.normBackward("the attention's input", b.tensor(norm1Tensor), dx, dh, l.x, l.inv1)
}

// attentionBackward returns the gradients of the rotated queries, a value a head, and of the
// rotated keys and of the values, a value a group: a chain over the heads of the group.
func (b *builder) attentionBackward(l *layerValues, dout value) (dq, dk, dv []value) {
	group := b.cfg.Heads / b.cfg.KVHeads
	g := grid{rows: b.tokens, cols: b.head}
	for h := range b.cfg.Heads {
		kv, dkStart, dvStart := h/group, none, none
		if h%group > 0 {
			dkStart, dvStart = dk[kv].ref, dv[kv].ref
		} else {
			dk, dv = append(dk, value{}), append(dv, value{})
		}
		p := b.probabilities("probabilities once more", h, l, b.scores("scores once more", h, l))
		dp := b.add("gradient of probabilities", h, b.square(), &product{
			out: b.square(), a: dout.head(h), b: l.v.head(kv).t(), depth: b.head.tiles(), start: none,
		})
		sum := b.add("sum of the gradient of probabilities", h, grid{}, &reduction{function: inProduct, x: dp, y: p})
		ds := b.add("gradient of scores", h, b.square(), &elementwise{
			function: scoreGradient, out: b.square(), m: []value{dp, p}, v: []ref{sum.ref}, gains: none, scale: b.scale,
		})
		n := b.tokens.tiles()
		dq = append(dq, b.add("gradient of turned queries", h, g,
			&product{out: g, a: one(ds), b: l.k.head(kv), depth: n, inner: upToRow, start: none}))
		dv[kv] = b.add("gradient of values", h, g,
			&product{out: g, a: one(p).t(), b: dout.head(h), depth: n, inner: fromRow, start: dvStart})
		dk[kv] = b.add("gradient of turned keys", h, g,
			&product{out: g, a: one(ds).t(), b: l.q.head(h), depth: n, inner: fromRow, start: dkStart})
	}
	return dq, dk, dv
}

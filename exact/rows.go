package exact

import "math"

// The methods below compute what a transformer needs besides matrix products. A row is one token's
// vector, one query's scores, or one token's logits. Each method states its formula; it rounds
// after each operation, in the order of the parentheses.

// Add computes y += x.
func (w *Worker) Add(y, x []float32) {
	x = x[:len(y)]
	n := 0
	if w.kernel.add != nil {
		if n = len(y) &^ 15; n > 0 {
			w.kernel.add(n, &y[0], &x[0])
		}
	}
	addPlain(y[n:], x[n:])
}

// RMSNorm computes y = (x·inv)·g with inv = 1/√(Σx²/n + eps), and returns inv (B. Zhang and R.
// Sennrich, "Root Mean Square Layer Normalization", 2019, with eps inside the root as in Llama). y
// may be x.
func (w *Worker) RMSNorm(y, x, g []float32, eps float32) (inv float32) {
	w.lanes = lanes{}
	w.dot(x, x)
	inv = Rsqrt(w.fold()/float32(len(x)) + eps)
	w.Normalize(y, x, g, inv)
	return inv
}

// Normalize computes y = (x·inv)·g, which is RMSNorm with the inv that it returned.
func (w *Worker) Normalize(y, x, g []float32, inv float32) {
	y, g = y[:len(x)], g[:len(x)]
	n := 0
	if w.kernel.normalize != nil {
		if n = len(x) &^ 15; n > 0 {
			w.kernel.normalize(n, &y[0], &x[0], &g[0], inv)
		}
	}
	normalizePlain(y[n:], x[n:], g[n:], inv)
}

// RMSNormBackward adds the gradients of RMSNorm to dx and dg. With a = Σ(dy·g)·x and c =
// -((a·inv)·inv)·inv/n,
//
//	dx += (dy·g)·inv + x·c        dg += (dy·x)·inv
func (w *Worker) RMSNormBackward(dx, dg, dy, x, g []float32, inv float32) {
	dx, dg, dy, g = dx[:len(x)], dg[:len(x)], dy[:len(x)], g[:len(x)]
	w.lanes = lanes{}
	n := 0
	if w.kernel.dot3 != nil {
		if n = len(x) &^ 15; n > 0 {
			w.kernel.dot3(n, &dy[0], &g[0], &x[0], &w.lanes)
		}
	}
	dot3Plain(dy[n:], g[n:], x[n:], &w.lanes)
	a := w.fold()
	c := -(float32(float32(float32(a*inv)*inv)*inv) / float32(len(x)))
	n = 0
	if w.kernel.normBackward != nil {
		if n = len(x) &^ 15; n > 0 {
			w.kernel.normBackward(n, &dx[0], &dg[0], &dy[0], &x[0], &g[0], inv, c)
		}
	}
	normBackwardPlain(dx[n:], dg[n:], dy[n:], x[n:], g[n:], inv, c)
}

// Rotate rotates each pair (x[i], x[i+n/2]) of a row of n elements by the angle with cosine cos[i]
// and sine sin[i] (RoPE, in the rotate-half layout of Hugging Face):
//
//	x[i] = x[i]·cos[i] - x[i+n/2]·sin[i]        x[i+n/2] = x[i+n/2]·cos[i] + x[i]·sin[i]
func (w *Worker) Rotate(x, cos, sin []float32) {
	a, b := x[:len(x)/2], x[len(x)/2:]
	cos, sin = cos[:len(a)], sin[:len(a)]
	n := 0
	if w.kernel.rotate != nil {
		if n = len(a) &^ 15; n > 0 {
			w.kernel.rotate(n, &a[0], &b[0], &cos[0], &sin[0])
		}
	}
	rotatePlain(a[n:], b[n:], cos[n:], sin[n:])
}

// RotateBack rotates by the opposite angles, which is the gradient of Rotate:
//
//	x[i] = x[i]·cos[i] + x[i+n/2]·sin[i]        x[i+n/2] = x[i+n/2]·cos[i] - x[i]·sin[i]
func (w *Worker) RotateBack(x, cos, sin []float32) {
	a, b := x[:len(x)/2], x[len(x)/2:]
	cos, sin = cos[:len(a)], sin[:len(a)]
	n := 0
	if w.kernel.rotateBack != nil {
		if n = len(a) &^ 15; n > 0 {
			w.kernel.rotateBack(n, &a[0], &b[0], &cos[0], &sin[0])
		}
	}
	rotateBackPlain(a[n:], b[n:], cos[n:], sin[n:])
}

// Softmax replaces a row of scores s by Exp(s·scale - shift)·inv with shift = max(s)·scale and inv
// = 1/ΣExp(...), for scale > 0. It returns shift and inv, from which SoftmaxAgain computes the same
// row.
func (w *Worker) Softmax(s []float32, scale float32) (shift, inv float32) {
	shift = float32(w.Max(s) * scale)
	inv = 1 / w.expSum(s, scale, shift)
	w.Scale(s, inv)
	return shift, inv
}

// SoftmaxAgain computes s = Exp(s·scale - shift)·inv.
func (w *Worker) SoftmaxAgain(s []float32, scale, shift, inv float32) {
	n := 0
	if w.kernel.expScale != nil {
		if n = len(s) &^ 15; n > 0 {
			w.kernel.expScale(n, &s[0], scale, shift, inv)
		}
	}
	expScalePlain(s[n:], scale, shift, inv)
}

// SoftmaxBackward replaces dp, the gradient of the probabilities p, by that of the scores: dp =
// (p·(dp - Σdp·p))·scale.
func (w *Worker) SoftmaxBackward(dp, p []float32, scale float32) {
	p = p[:len(dp)]
	w.lanes = lanes{}
	w.dot(dp, p)
	sum := w.fold()
	n := 0
	if w.kernel.softmaxBackward != nil {
		if n = len(dp) &^ 15; n > 0 {
			w.kernel.softmaxBackward(n, &dp[0], &p[0], sum, scale)
		}
	}
	softmaxBackwardPlain(dp[n:], p[n:], sum, scale)
}

// SwiGLU computes h = (g·Sigmoid(g))·u (N. Shazeer, "GLU Variants Improve Transformer", 2020).
func (w *Worker) SwiGLU(h, g, u []float32) {
	g, u = g[:len(h)], u[:len(h)]
	n := 0
	if w.kernel.swiglu != nil {
		if n = len(h) &^ 15; n > 0 {
			w.kernel.swiglu(n, &h[0], &g[0], &u[0])
		}
	}
	swigluPlain(h[n:], g[n:], u[n:])
}

// SwiGLUBackward replaces g and u by their gradients, and dh, the gradient of h, by h. With s =
// Sigmoid(g) and a = g·s:
//
//	u = dh·a        g = (dh·u)·(s·(1 + g·(1 - s)))        dh = a·u
func (w *Worker) SwiGLUBackward(dh, g, u []float32) {
	g, u = g[:len(dh)], u[:len(dh)]
	n := 0
	if w.kernel.swigluBackward != nil {
		if n = len(dh) &^ 15; n > 0 {
			w.kernel.swigluBackward(n, &dh[0], &g[0], &u[0])
		}
	}
	swigluBackwardPlain(dh[n:], g[n:], u[n:])
}

// CrossEntropy replaces a row of logits l by its gradient times weight, (softmax(l) -
// onehot(target))·weight, and returns the loss in nats. With m = max(l), e = Exp(l - m) and z = Σe:
//
//	l = e·(weight/z), less weight at target        loss = Log(z) - (l[target] - m)
func (w *Worker) CrossEntropy(l []float32, target int, weight float32) (loss float32) {
	loss = w.CrossEntropyShares(l, target, weight)
	l[target] -= weight
	return loss
}

// CrossEntropyShares is CrossEntropy without what the target is due: it turns l into
// softmax(l)·weight.
func (w *Worker) CrossEntropyShares(l []float32, target int, weight float32) (loss float32) {
	loss, z := w.crossEntropy(l, target)
	w.Scale(l, weight/z)
	return loss
}

// CrossEntropyLoss returns the loss of CrossEntropy. It replaces l by e.
func (w *Worker) CrossEntropyLoss(l []float32, target int) (loss float32) {
	loss, _ = w.crossEntropy(l, target)
	return loss
}

func (w *Worker) crossEntropy(l []float32, target int) (loss, z float32) {
	m := w.Max(l)
	above := l[target] - m
	z = w.expSum(l, 1, m)
	return Log(z) - above, z
}

// Finite is the function Finite with the worker's kernel: it returns the index of the first element
// of x that is NaN or infinite, or -1.
func (w *Worker) Finite(x []float32) int {
	w.lanes = lanes{}
	for i := 0; i < len(x); i += len(w.zeros) {
		part := x[i:min(i+len(w.zeros), len(x))]
		w.dot(part, w.zeros[:len(part)]) // 0 times a number is 0, and times all else NaN
	}
	if w.fold() == 0 {
		return -1
	}
	return Finite(x)
}

// Scale computes x = x·k.
func (w *Worker) Scale(x []float32, k float32) {
	n := 0
	if w.kernel.scale != nil {
		if n = len(x) &^ 15; n > 0 {
			w.kernel.scale(n, &x[0], k)
		}
	}
	scalePlain(x[n:], k)
}

// dot adds x·y to the worker's lanes.
func (w *Worker) dot(x, y []float32) {
	n := 0
	if w.kernel.dot != nil {
		if n = len(x) &^ 15; n > 0 {
			w.kernel.dot(n, &x[0], &y[0], &w.lanes)
		}
	}
	dotPlain(x[n:], y[n:], &w.lanes)
}

// least are the lanes of no elements, for Max.
var least = func() (l lanes) {
	for i := range l {
		l[i] = float32(math.Inf(-1))
	}
	return l
}()

// Max returns the greatest element of x, or -Inf. It ignores NaNs.
func (w *Worker) Max(x []float32) float32 {
	w.lanes = least
	n := 0
	if w.kernel.max != nil {
		if n = len(x) &^ 15; n > 0 {
			w.kernel.max(n, &x[0], &w.lanes)
		}
	}
	maxPlain(x[n:], &w.lanes)
	return w.foldMax()
}

// expSum computes x = Exp(x·scale - shift) and returns the sum.
func (w *Worker) expSum(x []float32, scale, shift float32) float32 {
	w.lanes = lanes{}
	n := 0
	if w.kernel.expSum != nil {
		if n = len(x) &^ 15; n > 0 {
			w.kernel.expSum(n, &x[0], scale, shift, &w.lanes)
		}
	}
	expSumPlain(x[n:], scale, shift, &w.lanes)
	return w.fold()
}

// fold returns the sum of the worker's lanes.
func (w *Worker) fold() float32 {
	if w.kernel.fold != nil {
		return w.kernel.fold(&w.lanes)
	}
	return w.lanes.fold()
}

// foldMax returns the greatest of the worker's lanes.
func (w *Worker) foldMax() float32 {
	if w.kernel.foldMax != nil {
		return w.kernel.foldMax(&w.lanes)
	}
	return w.lanes.foldMax()
}

package exact

// AdamWStep is the numbers of one step of AdamW; package optim says where they come from.
type AdamWStep struct {
	Beta1, Fresh1 float32 // shares of the old mean and of the gradient
	Beta2, Fresh2 float32 // the same of the mean square
	Keep          float32 // of a weight
	Rate          float32 // of the mean, by which a weight moves
	Scale, Eps    float32 // what the root of the mean square is multiplied by, and what is added
}

// AdamW moves weights x by their gradient g, and the means m of gradients and v of their squares:
//
//	m = Beta1·m + Fresh1·g        v = Beta2·v + (Fresh2·g)·g        x = x·Keep - (Rate·m)/(√v·Scale + Eps)
func (w *Worker) AdamW(x, m, v, g []float32, s AdamWStep) {
	m, v, g = m[:len(x)], v[:len(x)], g[:len(x)]
	n := 0
	if kernel := w.kernel.adamw(); kernel != nil {
		if n = len(x) &^ 15; n > 0 {
			kernel(n, &x[0], &m[0], &v[0], &g[0], s.Beta1, s.Fresh1, s.Beta2, s.Fresh2, s.Keep, s.Rate, s.Scale, s.Eps)
		}
	}
	adamwPlain(x[n:], m[n:], v[n:], g[n:], s)
}

// adamwKernel is adamwPlain for n elements, a multiple of 16.
type adamwKernel func(n int, x, m, v, g *float32, beta1, fresh1, beta2, fresh2, keep, rate, scale, eps float32)

// adamwPlain is the definition.
func adamwPlain(x, m, v, g []float32, s AdamWStep) {
	m, v, g = m[:len(x)], v[:len(x)], g[:len(x)]
	for i := range x {
		m[i] = float32(s.Beta1*m[i]) + float32(s.Fresh1*g[i])
		v[i] = float32(s.Beta2*v[i]) + float32(float32(s.Fresh2*g[i])*g[i])
		divisor := float32(Sqrt(v[i])*s.Scale) + s.Eps
		x[i] = float32(x[i]*s.Keep) - float32(float32(s.Rate*m[i])/divisor)
	}
}

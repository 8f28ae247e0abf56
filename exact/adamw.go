package exact

// AdamWStep holds the coefficients of one step of AdamW; package optim computes them.
type AdamWStep struct {
	Beta1, Fresh1 float32 // weights of the old mean and of the gradient
	Beta2, Fresh2 float32 // weights of the old mean square and of the squared gradient
	Keep          float32 // factor of the parameter: weight decay
	Rate          float32 // factor of the mean
	Scale, Eps    float32 // factor of the mean square's root, and what is added to it
}

// AdamW updates the parameters x, the means m of gradients and the means v of squared gradients
// from the gradient g (I. Loshchilov and F. Hutter, "Decoupled Weight Decay Regularization", 2019):
//
//	m = Beta1·m + Fresh1·g
//	v = Beta2·v + (Fresh2·g)·g
//	x = x·Keep - (Rate·m)/(√v·Scale + Eps)
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

// adamwKernel computes adamwPlain for n elements, a multiple of 16.
type adamwKernel func(n int, x, m, v, g *float32, beta1, fresh1, beta2, fresh2, keep, rate, scale, eps float32)

// adamwPlain defines AdamW.
func adamwPlain(x, m, v, g []float32, s AdamWStep) {
	m, v, g = m[:len(x)], v[:len(x)], g[:len(x)]
	for i := range x {
		m[i] = float32(s.Beta1*m[i]) + float32(s.Fresh1*g[i])
		v[i] = float32(s.Beta2*v[i]) + float32(float32(s.Fresh2*g[i])*g[i])
		divisor := float32(Sqrt(v[i])*s.Scale) + s.Eps
		x[i] = float32(x[i]*s.Keep) - float32(float32(s.Rate*m[i])/divisor)
	}
}

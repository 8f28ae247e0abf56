package exact

// The functions below define the row kernels. An assembly kernel has the same parameters, except
// that it takes a length, a multiple of 16, and pointers to the first elements. The rest of a row
// is computed here. Either way element i belongs to lane i mod 16.

func addPlain(y, x []float32) {
	for i, v := range x[:len(y)] {
		y[i] += v
	}
}

func scalePlain(x []float32, k float32) {
	for i, v := range x {
		x[i] = float32(v * k)
	}
}

func dotPlain(x, y []float32, l *lanes) {
	for i, v := range y[:len(x)] {
		l[i%16] += float32(x[i] * v)
	}
}

func dot3Plain(x, y, z []float32, l *lanes) {
	y, z = y[:len(x)], z[:len(x)]
	for i, v := range x {
		l[i%16] += float32(float32(v*y[i]) * z[i])
	}
}

func maxPlain(x []float32, l *lanes) {
	for i, v := range x {
		if v > l[i%16] {
			l[i%16] = v
		}
	}
}

func normalizePlain(y, x, g []float32, inv float32) {
	y, g = y[:len(x)], g[:len(x)]
	for i, v := range x {
		y[i] = float32(float32(v*inv) * g[i])
	}
}

func normBackwardPlain(dx, dg, dy, x, g []float32, inv, c float32) {
	dx, dg, dy, g = dx[:len(x)], dg[:len(x)], dy[:len(x)], g[:len(x)]
	for i, v := range x {
		dx[i] += float32(float32(dy[i]*g[i])*inv) + float32(v*c)
		dg[i] += float32(float32(dy[i]*v) * inv)
	}
}

func rotatePlain(a, b, cos, sin []float32) {
	b, cos, sin = b[:len(a)], cos[:len(a)], sin[:len(a)]
	for i, x := range a {
		y := b[i]
		a[i] = float32(x*cos[i]) - float32(y*sin[i])
		b[i] = float32(y*cos[i]) + float32(x*sin[i])
	}
}

func rotateBackPlain(a, b, cos, sin []float32) {
	b, cos, sin = b[:len(a)], cos[:len(a)], sin[:len(a)]
	for i, x := range a {
		y := b[i]
		a[i] = float32(x*cos[i]) + float32(y*sin[i])
		b[i] = float32(y*cos[i]) - float32(x*sin[i])
	}
}

func expSumPlain(x []float32, scale, shift float32, l *lanes) {
	for i, v := range x {
		e := Exp(float32(v*scale) - shift)
		x[i] = e
		l[i%16] += e
	}
}

func expScalePlain(x []float32, scale, shift, inv float32) {
	for i, v := range x {
		x[i] = float32(Exp(float32(v*scale)-shift) * inv)
	}
}

func softmaxBackwardPlain(dp, p []float32, sum, scale float32) {
	p = p[:len(dp)]
	for i, v := range dp {
		dp[i] = float32(float32(p[i]*(v-sum)) * scale)
	}
}

func swigluPlain(h, g, u []float32) {
	g, u = g[:len(h)], u[:len(h)]
	for i, v := range g {
		h[i] = float32(Silu(v) * u[i])
	}
}

func swigluBackwardPlain(dh, g, u []float32) {
	g, u = g[:len(dh)], u[:len(dh)]
	for i, d := range dh {
		x, y := g[i], u[i]
		s := Sigmoid(x)
		a := float32(x * s)
		u[i] = float32(d * a)
		g[i] = float32(float32(d*y) * float32(s*(1+float32(x*(1-s)))))
		dh[i] = float32(a * y)
	}
}

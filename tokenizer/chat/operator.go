package chat

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// compute returns a of two operands.
func (r *renderer) compute(op string, a, b any) (any, error) {
	if err := r.spend(partWork); err != nil {
		return nil, err
	}
	if op == "~" {
		x, err := r.text(a)
		if err != nil {
			return nil, err
		}
		y, err := r.text(b)
		if err != nil {
			return nil, err
		}
		return x + y, r.spend(len(x) + len(y))
	}
	ai, af, aw, aok := number(a)
	bi, bf, bw, bok := number(b)
	if !aok || !bok {
		return r.joined(op, a, b)
	}
	if aw && bw {
		c, ok := int64(0), true
		switch op {
		case "+":
			c = ai + bi
			ok = (c > ai) == (bi > 0)
		case "-":
			c = ai - bi
			ok = (c < ai) == (bi > 0)
		case "*":
			c = ai * bi
			ok = ai == 0 || c/ai == bi && !(ai == -1 && bi == math.MinInt64)
		case "//", "%":
			if bi == 0 {
				return nil, errors.New("division by zero")
			}
			q, m := ai/bi, ai%bi
			if m != 0 && (m < 0) != (bi < 0) {
				q, m = q-1, m+bi
			}
			if c = q; op == "%" {
				c = m
			}
		case "/", "**":
			aw = false
		}
		if op == "+" && bi == 0 || op == "-" && bi == 0 {
			c, ok = ai, true
		}
		if !ok {
			return nil, fmt.Errorf("%d %s %d is too large", ai, op, bi)
		}
		if aw {
			return c, nil
		}
	}
	return float(op, af, bf, bw && bi >= 0 && ai != 0)
}

// float computes floats. A power is whole if it is said to be.
func float(op string, af, bf float64, whole bool) (any, error) {
	switch op {
	case "+":
		return af + bf, nil
	case "-":
		return af - bf, nil
	case "*":
		return af * bf, nil
	case "/":
		if bf == 0 {
			return nil, errors.New("division by zero")
		}
		return af / bf, nil
	case "**":
		f := math.Pow(af, bf)
		if whole && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f), nil
		}
		return f, nil
	}
	return nil, fmt.Errorf("%g %s %g cannot be computed", af, op, bf)
}

// joined computes texts and lists.
func (r *renderer) joined(op string, a, b any) (any, error) {
	times, _, whole, _ := number(b)
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok && op == "+" {
			return x + y, r.spend(len(x) + len(y))
		}
		if op == "*" && whole {
			n := int(max(times, 0))
			if len(x) > 0 && n > workMax/len(x) {
				return nil, errWork
			}
			return strings.Repeat(x, n), r.spend(n * len(x))
		}
	case []any:
		if y, ok := b.([]any); ok && op == "+" {
			return append(append([]any{}, x...), y...), r.spend(stepWork * (len(x) + len(y)))
		}
	}
	return nil, fmt.Errorf("%s %s %s cannot be computed", kindOf(a), op, kindOf(b))
}

// equal is Python's ==.
func (r *renderer) equal(a, b any, depth int) (bool, error) {
	if err := r.spend(stepWork); err != nil || depth > depthMax {
		return false, errors.Join(err, errWork)
	}
	ai, af, aw, aok := number(a)
	bi, bf, bw, bok := number(b)
	if aok && bok {
		if aw && bw {
			return ai == bi, nil
		}
		return af == bf, nil
	}
	switch x := a.(type) {
	case nil:
		return b == nil, nil
	case string:
		y, ok := b.(string)
		return ok && x == y, r.spend(len(x))
	case undefined:
		_, ok := b.(undefined)
		return ok, nil
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		for i := range x {
			if same, err := r.equal(x[i], y[i], depth+1); err != nil || !same {
				return false, err
			}
		}
		return true, nil
	case *Dict:
		y, ok := b.(*Dict)
		if !ok || len(x.keys) != len(y.keys) {
			return false, nil
		}
		for _, k := range x.keys {
			v, ok := y.get(k)
			if !ok {
				return false, nil
			}
			if same, err := r.equal(x.values[k], v, depth+1); err != nil || !same {
				return false, err
			}
		}
		return true, nil
	case *namespace:
		y, ok := b.(*namespace)
		return ok && x == y, nil
	}
	return false, nil
}

// less is Python's <.
func (r *renderer) less(a, b any) (bool, error) {
	ai, af, aw, aok := number(a)
	bi, bf, bw, bok := number(b)
	switch {
	case aok && bok && aw && bw:
		return ai < bi, nil
	case aok && bok:
		return af < bf, nil
	}
	x, xok := a.(string)
	y, yok := b.(string)
	if !xok || !yok {
		return false, fmt.Errorf("%s and %s have no order", kindOf(a), kindOf(b))
	}
	return x < y, r.spend(min(len(x), len(y)))
}

// contains is Python's in.
func (r *renderer) contains(v, item any) (bool, error) {
	switch v := v.(type) {
	case string:
		s, ok := item.(string)
		if !ok {
			return false, fmt.Errorf("%s cannot be in a text", kindOf(item))
		}
		return strings.Contains(v, s), r.spend(len(v))
	case *Dict:
		k, ok := item.(string)
		if ok {
			_, ok = v.get(k)
		}
		return ok, nil
	}
	items, err := r.items(v)
	if err != nil {
		return false, err
	}
	for _, x := range items {
		if same, err := r.equal(x, item, 0); err != nil || same {
			return same, err
		}
	}
	return false, nil
}

// holds is a comparison.
func (r *renderer) holds(op string, a, b any) (ok bool, err error) {
	if err := r.spend(partWork); err != nil {
		return false, err
	}
	switch op {
	case "==":
		return r.equal(a, b, 0)
	case "!=":
		ok, err = r.equal(a, b, 0)
		return !ok, err
	case "<":
		return r.less(a, b)
	case ">":
		return r.less(b, a)
	case "<=":
		ok, err = r.less(b, a)
		return !ok, err
	case ">=":
		ok, err = r.less(a, b)
		return !ok, err
	case "in":
		return r.contains(b, a)
	}
	ok, err = r.contains(b, a)
	return !ok, err
}

package chat

import (
	"fmt"
	"slices"
	"strconv"
)

// tuple reads an expression, or several separated by commas, which are a list.
func (p *parser) tuple() (expression, error) {
	first, err := p.expression()
	if err != nil || p.peek().text != "," || p.peek().kind != kindOperator {
		return first, err
	}
	list := []expression{first}
	for p.accept(",") {
		if k := p.peek(); k.kind == kindClose || k.kind == kindOperator && k.text == ")" {
			break
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return listOf(list), nil
}

func listOf(list []expression) expression {
	return func(r *renderer, s *scope) (any, error) {
		if err := r.spend(stepWork * len(list)); err != nil {
			return nil, err
		}
		values := make([]any, len(list))
		for i, e := range list {
			var err error
			if values[i], err = e(r, s); err != nil {
				return nil, err
			}
		}
		return values, nil
	}
}

func (p *parser) expression() (expression, error) {
	if err := p.down(); err != nil {
		return nil, err
	}
	defer p.up()
	e, err := p.or()
	for err == nil && p.accept("if") {
		var when expression
		if when, err = p.or(); err != nil {
			return nil, err
		}
		otherwise := expression(func(*renderer, *scope) (any, error) { return undefined("an if without else"), nil })
		if p.accept("else") {
			otherwise, err = p.expression()
		}
		then := e
		e = func(r *renderer, s *scope) (any, error) {
			v, err := when(r, s)
			if err == nil {
				err = r.spend(partWork)
			}
			if err != nil {
				return nil, err
			}
			if truth(v) {
				return then(r, s)
			}
			return otherwise(r, s)
		}
	}
	return e, err
}

func (p *parser) or() (expression, error) {
	return p.logical("or", func() (expression, error) { return p.logical("and", p.not) })
}

// logical reads operands of "and" or "or", whose value is that of the operand that decides.
func (p *parser) logical(op string, operand func() (expression, error)) (expression, error) {
	left, err := operand()
	for err == nil && p.accept(op) {
		var right expression
		right, err = operand()
		first := left
		left = func(r *renderer, s *scope) (any, error) {
			v, err := first(r, s)
			if err == nil {
				err = r.spend(partWork)
			}
			if err != nil || truth(v) == (op == "or") {
				return v, err
			}
			return right(r, s)
		}
	}
	return left, err
}

func (p *parser) not() (expression, error) {
	if !p.accept("not") {
		return p.compare()
	}
	if err := p.down(); err != nil {
		return nil, err
	}
	defer p.up()
	e, err := p.not()
	return func(r *renderer, s *scope) (any, error) {
		v, err := e(r, s)
		return !truth(v), err
	}, err
}

func (p *parser) compare() (expression, error) {
	left, err := p.binary(sums)
	type step struct {
		op    string
		right expression
	}
	var steps []step
	for err == nil {
		op := ""
		switch t := p.peek(); {
		case t.kind == kindOperator && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.text) || t.kind == kindName && t.text == "in":
			op = p.take().text
		case t.kind == kindName && t.text == "not" && len(p.tokens) > 1 && p.tokens[1].text == "in":
			p.take()
			p.take()
			op = "not in"
		}
		if op == "" {
			break
		}
		var right expression
		right, err = p.binary(sums)
		steps = append(steps, step{op, right})
	}
	if len(steps) == 0 || err != nil {
		return left, err
	}
	return func(r *renderer, s *scope) (any, error) {
		a, err := left(r, s)
		if err != nil {
			return nil, err
		}
		for _, x := range steps {
			b, err := x.right(r, s)
			if err != nil {
				return nil, err
			}
			ok, err := r.holds(x.op, a, b)
			if err != nil || !ok {
				return false, err
			}
			a = b
		}
		return true, nil
	}, nil
}

// The levels of operators of two operands, the looser ones first.
const (
	sums = iota
	joins
	products
	powers
	levels
)

var binaries = [levels][]string{sums: {"+", "-"}, joins: {"~"}, products: {"*", "/", "//", "%"}, powers: {"**"}}

func (p *parser) binary(level int) (expression, error) {
	if level == levels {
		return p.unary(true)
	}
	left, err := p.binary(level + 1)
	for err == nil && p.peek().kind == kindOperator && slices.Contains(binaries[level], p.peek().text) {
		op := p.take().text
		var right expression
		right, err = p.binary(level + 1)
		first := left
		left = func(r *renderer, s *scope) (any, error) {
			a, err := first(r, s)
			if err != nil {
				return nil, err
			}
			b, err := right(r, s)
			if err != nil {
				return nil, err
			}
			return r.compute(op, a, b)
		}
	}
	return left, err
}

func (p *parser) unary(filters bool) (expression, error) {
	if err := p.down(); err != nil {
		return nil, err
	}
	defer p.up()
	var e expression
	var err error
	switch {
	case p.accept("-"):
		var of expression
		of, err = p.unary(false)
		e = func(r *renderer, s *scope) (any, error) {
			v, err := of(r, s)
			if err != nil {
				return nil, err
			}
			return r.compute("-", int64(0), v)
		}
	case p.accept("+"):
		e, err = p.unary(false)
	default:
		e, err = p.primary()
	}
	if err == nil {
		e, err = p.postfix(e)
	}
	for err == nil && filters {
		switch {
		case p.accept("|"):
			e, err = p.filter(e)
		case p.peek().kind == kindName && p.peek().text == "is":
			p.take()
			e, err = p.test(e)
		case p.peek().kind == kindOperator && p.peek().text == "(":
			e, err = p.postfix(e)
		default:
			return e, nil
		}
	}
	return e, err
}

func constant(v any) expression { return func(*renderer, *scope) (any, error) { return v, nil } }

func (p *parser) primary() (expression, error) {
	t := p.take()
	switch t.kind {
	case kindName:
		switch t.text {
		case "true", "True":
			return constant(true), nil
		case "false", "False":
			return constant(false), nil
		case "none", "None":
			return constant(nil), nil
		}
		return func(_ *renderer, s *scope) (any, error) { return s.get(t.text), nil }, nil
	case kindString:
		text := t.text
		for p.peek().kind == kindString {
			text += p.take().text
		}
		return constant(text), nil
	case kindInt:
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			return nil, p.fault("the number %.40s is too large", t.text)
		}
		return constant(n), nil
	case kindFloat:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return nil, p.fault("the number %.40s is too large", t.text)
		}
		return constant(f), nil
	}
	if t.kind != kindOperator {
		return nil, p.fault("%q where a value should be", t.text)
	}
	switch t.text {
	case "(":
		if p.accept(")") {
			return listOf(nil), nil
		}
		e, err := p.tuple()
		if err == nil {
			err = p.expect(")")
		}
		return e, err
	case "[":
		return p.list()
	case "{":
		return p.mapping()
	}
	return nil, p.fault("%q where a value should be", t.text)
}

// list reads the rest of a list.
func (p *parser) list() (expression, error) {
	var list []expression
	for !p.accept("]") {
		if len(list) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
			if p.accept("]") {
				break
			}
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return listOf(list), nil
}

// mapping reads the rest of a mapping.
func (p *parser) mapping() (expression, error) {
	var keys, values []expression
	for !p.accept("}") {
		if len(keys) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
			if p.accept("}") {
				break
			}
		}
		k, err := p.expression()
		if err == nil {
			err = p.expect(":")
		}
		if err != nil {
			return nil, err
		}
		v, err := p.expression()
		if err != nil {
			return nil, err
		}
		keys, values = append(keys, k), append(values, v)
	}
	both := listOf(append(slices.Clone(keys), values...))
	return func(r *renderer, s *scope) (any, error) {
		v, err := both(r, s)
		if err != nil {
			return nil, err
		}
		all, d := v.([]any), &Dict{}
		for i := range keys {
			k, ok := all[i].(string)
			if !ok {
				return nil, fmt.Errorf("a key of a mapping is %s, not a text", kindOf(all[i]))
			}
			d.set(k, all[len(keys)+i])
		}
		return d, nil
	}, nil
}

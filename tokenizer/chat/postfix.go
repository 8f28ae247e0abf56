package chat

import (
	"fmt"
	"slices"
	"strconv"
)

// postfix reads fields, subscripts and calls.
func (p *parser) postfix(e expression) (expression, error) {
	for {
		of := e
		switch {
		case p.accept("."):
			t := p.take()
			switch t.kind {
			case kindName:
				e = func(r *renderer, s *scope) (any, error) {
					v, err := of(r, s)
					if err != nil {
						return nil, err
					}
					return r.field(v, t.text)
				}
			case kindInt:
				n, _ := strconv.ParseInt(t.text, 10, 64)
				e = func(r *renderer, s *scope) (any, error) {
					v, err := of(r, s)
					if err != nil {
						return nil, err
					}
					return r.subscript(v, n)
				}
			default:
				return nil, p.fault("%q after a point", t.text)
			}
		case p.peek().kind == kindOperator && p.peek().text == "[":
			p.take()
			var err error
			if e, err = p.bracket(of); err != nil {
				return nil, err
			}
		case p.peek().kind == kindOperator && p.peek().text == "(":
			args, err := p.arguments()
			if err != nil {
				return nil, err
			}
			e = func(r *renderer, s *scope) (any, error) {
				v, err := of(r, s)
				if err != nil {
					return nil, err
				}
				f, ok := v.(function)
				if !ok {
					if u, is := v.(undefined); is {
						return nil, fmt.Errorf("the function %q is not known here", string(u))
					}
					return nil, fmt.Errorf("%s is called, which is not a function", kindOf(v))
				}
				list, named, err := args(r, s)
				if err != nil {
					return nil, err
				}
				return r.call(f, list, named)
			}
		default:
			return e, nil
		}
	}
}

// bracket reads a subscript or a slice of a value.
func (p *parser) bracket(of expression) (expression, error) {
	var parts [3]expression
	n := 0
	for {
		if k := p.peek(); k.kind != kindOperator || k.text != ":" && k.text != "]" {
			e, err := p.expression()
			if err != nil {
				return nil, err
			}
			parts[n] = e
		}
		if n == 2 || !p.accept(":") {
			break
		}
		n++
	}
	if err := p.expect("]"); err != nil {
		return nil, err
	}
	if n == 0 && parts[0] == nil {
		return nil, p.fault("a subscript is empty")
	}
	return func(r *renderer, s *scope) (any, error) {
		v, err := of(r, s)
		if err != nil {
			return nil, err
		}
		var at [3]any
		for i, e := range parts {
			if e != nil {
				if at[i], err = e(r, s); err != nil {
					return nil, err
				}
			}
		}
		if n == 0 {
			return r.subscript(v, at[0])
		}
		return r.slice(v, at)
	}, nil
}

// arguments reads the arguments of a call, in parentheses.
func (p *parser) arguments() (func(r *renderer, s *scope) ([]any, *Dict, error), error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var list, values []expression
	var names []string
	for first := true; !p.accept(")"); first = false {
		if !first {
			if err := p.expect(","); err != nil {
				return nil, err
			}
			if p.accept(")") {
				break
			}
		}
		named := p.peek().kind == kindName && len(p.tokens) > 1 && p.tokens[1].kind == kindOperator && p.tokens[1].text == "="
		if named {
			names = append(names, p.take().text)
			p.take()
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		if named {
			values = append(values, e)
		} else {
			list = append(list, e)
		}
	}
	args, kwargs := listOf(list), listOf(values)
	return func(r *renderer, s *scope) ([]any, *Dict, error) {
		a, err := args(r, s)
		if err != nil {
			return nil, nil, err
		}
		b, err := kwargs(r, s)
		if err != nil {
			return nil, nil, err
		}
		named := &Dict{}
		for i, v := range b.([]any) {
			named.set(names[i], v)
		}
		return a.([]any), named, nil
	}, nil
}

func (p *parser) filter(of expression) (expression, error) {
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	f, ok := filters[name]
	if !ok {
		return nil, p.fault("the filter %q is not known here", name)
	}
	args := func(*renderer, *scope) ([]any, *Dict, error) { return nil, &Dict{}, nil }
	if k := p.peek(); k.kind == kindOperator && k.text == "(" {
		if args, err = p.arguments(); err != nil {
			return nil, err
		}
	}
	return func(r *renderer, s *scope) (any, error) {
		v, err := of(r, s)
		if err != nil {
			return nil, err
		}
		list, named, err := args(r, s)
		if err != nil {
			return nil, err
		}
		if v, err = r.call(f, append([]any{v}, list...), named); err != nil {
			return nil, fmt.Errorf("filter %s: %w", name, err)
		}
		return v, nil
	}, nil
}

func (p *parser) test(of expression) (expression, error) {
	negated := p.accept("not")
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	f, ok := tests[name]
	if !ok {
		return nil, p.fault("the test %q is not known here", name)
	}
	arg := listOf(nil)
	switch k := p.peek(); {
	case k.kind == kindOperator && k.text == "(":
		args, err := p.arguments()
		if err != nil {
			return nil, err
		}
		arg = func(r *renderer, s *scope) (any, error) {
			list, _, err := args(r, s)
			return list, err
		}
	case k.kind == kindString, k.kind == kindInt, k.kind == kindFloat, k.kind == kindOperator && (k.text == "[" || k.text == "{"),
		k.kind == kindName && !slices.Contains([]string{"else", "or", "and", "is", "if", "in", "not", "recursive"}, k.text):
		e, err := p.primary()
		if err == nil {
			e, err = p.postfix(e)
		}
		if err != nil {
			return nil, err
		}
		arg = listOf([]expression{e})
	}
	return func(r *renderer, s *scope) (any, error) {
		v, err := of(r, s)
		if err != nil {
			return nil, err
		}
		args, err := arg(r, s)
		if err != nil {
			return nil, err
		}
		ok, err := r.test(name, f, v, args.([]any))
		return ok != negated, err
	}, nil
}

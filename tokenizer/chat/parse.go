package chat

import (
	"fmt"
	"slices"
)

// The nodes of a template. A statement is executed, an expression has a value.
type (
	statement struct {
		do   func(r *renderer, s *scope) (flow, error)
		line int
	}
	expression func(r *renderer, s *scope) (any, error)
)

// flow says how a list of statements ended.
type flow uint8

const (
	flowOn flow = iota
	flowBreak
	flowContinue
)

type parser struct {
	tokens []token
	depth  int
	loops  int
}

// depthMax bounds how deep expressions and tags are nested, and macros call each other.
const depthMax = 64

func (p *parser) peek() token { return p.tokens[0] }

func (p *parser) take() token {
	t := p.tokens[0]
	if t.kind != kindEnd {
		p.tokens = p.tokens[1:]
	}
	return t
}

// accept takes the next token if it is that operator or name.
func (p *parser) accept(text string) bool {
	t := p.peek()
	if (t.kind == kindOperator || t.kind == kindName || t.kind == kindClose) && t.text == text {
		p.take()
		return true
	}
	return false
}

func (p *parser) expect(text string) error {
	if !p.accept(text) {
		return p.fault("%q where %q should be", p.peek().text, text)
	}
	return nil
}

func (p *parser) name() (string, error) {
	if p.peek().kind != kindName {
		return "", p.fault("%q where a name should be", p.peek().text)
	}
	return p.take().text, nil
}

func (p *parser) fault(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", p.peek().line, fmt.Sprintf(format, args...))
}

// down notes that the parser goes a level deeper, until up is called.
func (p *parser) down() error {
	if p.depth++; p.depth > depthMax {
		return p.fault("it nests deeper than %d", depthMax)
	}
	return nil
}

func (p *parser) up() { p.depth-- }

// body reads statements up to a tag with one of the given names, whose name it takes.
func (p *parser) body(ends ...string) (list []statement, end string, err error) {
	if err := p.down(); err != nil {
		return nil, "", err
	}
	defer p.up()
	for {
		t := p.take()
		var do func(r *renderer, s *scope) (flow, error)
		switch {
		case t.kind == kindEnd && len(ends) == 0:
			return list, "", nil
		case t.kind == kindEnd:
			return nil, "", fmt.Errorf("line %d: %v is missing", t.line, ends)
		case t.kind == kindText:
			do = func(r *renderer, _ *scope) (flow, error) { return flowOn, r.write(t.text) }
		case t.text == "{{":
			e, err := p.tuple()
			if err == nil {
				err = p.expect("}}")
			}
			if err != nil {
				return nil, "", err
			}
			do = func(r *renderer, s *scope) (flow, error) {
				v, err := e(r, s)
				if err != nil {
					return flowOn, err
				}
				text, err := r.text(v)
				if err != nil {
					return flowOn, err
				}
				return flowOn, r.write(text)
			}
		default:
			tag, err := p.name()
			if err != nil {
				return nil, "", err
			}
			if slices.Contains(ends, tag) {
				return list, tag, nil
			}
			if do, err = p.tag(tag); err != nil {
				return nil, "", err
			}
		}
		list = append(list, statement{do, t.line})
	}
}

// block reads the rest of a tag and the statements up to one with one of the given names.
func (p *parser) block(ends ...string) ([]statement, string, error) {
	if err := p.expect("%}"); err != nil {
		return nil, "", err
	}
	return p.body(ends...)
}

// whole is block for the last part of a tag.
func (p *parser) whole(end string) ([]statement, error) {
	list, _, err := p.block(end)
	if err == nil {
		err = p.expect("%}")
	}
	return list, err
}

func (p *parser) tag(name string) (func(r *renderer, s *scope) (flow, error), error) {
	switch name {
	case "if":
		return p.tagIf()
	case "for":
		return p.tagFor()
	case "set":
		return p.tagSet()
	case "macro":
		return p.tagMacro()
	case "generation":
		list, err := p.whole("endgeneration")
		return func(r *renderer, s *scope) (flow, error) {
			from := r.out.Len()
			how, err := r.run(list, s)
			if r.depth == 0 {
				r.generated = append(r.generated, span{from, r.out.Len()})
			}
			return how, err
		}, err
	case "break", "continue":
		if p.loops == 0 {
			return nil, p.fault("%s outside of a loop", name)
		}
		how := flowBreak
		if name == "continue" {
			how = flowContinue
		}
		return func(*renderer, *scope) (flow, error) { return how, nil }, p.expect("%}")
	}
	return nil, p.fault("the tag %q is not known here", name)
}

func (p *parser) tagIf() (func(r *renderer, s *scope) (flow, error), error) {
	type branch struct {
		when expression
		list []statement
	}
	var branches []branch
	for end := "elif"; end != "endif"; {
		b := branch{}
		var err error
		if end == "elif" {
			if b.when, err = p.tuple(); err != nil {
				return nil, err
			}
			b.list, end, err = p.block("elif", "else", "endif")
		} else {
			b.list, end, err = p.block("endif")
		}
		if err != nil {
			return nil, err
		}
		branches = append(branches, b)
	}
	return func(r *renderer, s *scope) (flow, error) {
		for _, b := range branches {
			if b.when != nil {
				if err := r.spend(partWork); err != nil {
					return flowOn, err
				}
				v, err := b.when(r, s)
				if err != nil {
					return flowOn, err
				}
				if !truth(v) {
					continue
				}
			}
			return r.run(b.list, s)
		}
		return flowOn, nil
	}, p.expect("%}")
}

func (p *parser) tagFor() (func(r *renderer, s *scope) (flow, error), error) {
	names, err := p.names()
	if err == nil {
		err = p.expect("in")
	}
	if err != nil {
		return nil, err
	}
	over, err := p.or()
	if err != nil {
		return nil, err
	}
	var when expression
	if p.accept("if") {
		if when, err = p.expression(); err != nil {
			return nil, err
		}
	}
	if p.peek().text == "recursive" {
		return nil, p.fault("recursive loops are not known here")
	}
	p.loops++
	list, end, err := p.block("else", "endfor")
	p.loops--
	var otherwise []statement
	if err == nil && end == "else" {
		otherwise, _, err = p.block("endfor")
	}
	if err != nil {
		return nil, err
	}
	return func(r *renderer, s *scope) (flow, error) {
		v, err := over(r, s)
		if err != nil {
			return flowOn, err
		}
		items, err := r.items(v)
		if err != nil {
			return flowOn, err
		}
		if when != nil {
			if items, err = r.kept(s, names, items, when); err != nil {
				return flowOn, err
			}
		}
		for i := range items {
			if err := r.spend(stepWork); err != nil {
				return flowOn, err
			}
			inner := s.inner()
			inner.vars["loop"] = &loop{i, items}
			if err := r.assign(inner, names, items[i]); err != nil {
				return flowOn, err
			}
			how, err := r.run(list, inner)
			if err != nil {
				return flowOn, err
			}
			if how == flowBreak {
				break
			}
		}
		if len(items) == 0 {
			return r.run(otherwise, s)
		}
		return flowOn, nil
	}, p.expect("%}")
}

// kept returns the items for which when is true.
func (r *renderer) kept(s *scope, names []string, items []any, when expression) ([]any, error) {
	var kept []any
	for _, item := range items {
		if err := r.spend(stepWork); err != nil {
			return nil, err
		}
		inner := s.inner()
		if err := r.assign(inner, names, item); err != nil {
			return nil, err
		}
		v, err := when(r, inner)
		if err != nil {
			return nil, err
		}
		if truth(v) {
			kept = append(kept, item)
		}
	}
	return kept, nil
}

// names reads the targets of an assignment.
func (p *parser) names() ([]string, error) {
	parens := p.accept("(")
	var names []string
	for {
		n, err := p.name()
		if err != nil {
			return nil, err
		}
		names = append(names, n)
		if !p.accept(",") {
			break
		}
	}
	if parens {
		return names, p.expect(")")
	}
	return names, nil
}

func (p *parser) tagSet() (func(r *renderer, s *scope) (flow, error), error) {
	names, err := p.names()
	if err != nil {
		return nil, err
	}
	field := ""
	if len(names) == 1 && p.accept(".") {
		if field, err = p.name(); err != nil {
			return nil, err
		}
	}
	var value expression
	if p.accept("=") {
		if value, err = p.tuple(); err == nil {
			err = p.expect("%}")
		}
	} else {
		var list []statement
		if p.peek().text == "|" {
			return nil, p.fault("filters of a block that is set are not known here")
		}
		list, err = p.whole("endset")
		value = func(r *renderer, s *scope) (any, error) { return r.capture(list, s.inner()) }
	}
	if err != nil {
		return nil, err
	}
	return func(r *renderer, s *scope) (flow, error) {
		v, err := value(r, s)
		if err != nil {
			return flowOn, err
		}
		if field == "" {
			return flowOn, r.assign(s, names, v)
		}
		ns, ok := s.get(names[0]).(*namespace)
		if !ok {
			return flowOn, fmt.Errorf("%s is not a namespace", names[0])
		}
		ns.set(field, v)
		return flowOn, nil
	}, nil
}

// param is a parameter of a macro.
type param struct {
	name  string
	value expression // its default, or nil
}

func (p *parser) tagMacro() (func(r *renderer, s *scope) (flow, error), error) {
	name, err := p.name()
	if err == nil {
		err = p.expect("(")
	}
	if err != nil {
		return nil, err
	}
	var params []param
	for !p.accept(")") {
		if len(params) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		n, err := p.name()
		if err != nil {
			return nil, err
		}
		one := param{name: n}
		if p.accept("=") {
			if one.value, err = p.expression(); err != nil {
				return nil, err
			}
		}
		params = append(params, one)
	}
	loops := p.loops
	p.loops = 0
	list, err := p.whole("endmacro")
	p.loops = loops
	if err != nil {
		return nil, err
	}
	return func(_ *renderer, s *scope) (flow, error) {
		s.vars[name] = function(func(r *renderer, args []any, named *Dict) (any, error) {
			inner := s.inner()
			for i, q := range params {
				v, given := named.get(q.name)
				switch {
				case i < len(args):
					v = args[i]
				case given:
				case q.value != nil:
					if v, err = q.value(r, inner); err != nil {
						return nil, err
					}
				default:
					v = undefined(q.name)
				}
				inner.vars[q.name] = v
			}
			if len(args) > len(params) {
				return nil, fmt.Errorf("macro %s takes %d arguments, not %d", name, len(params), len(args))
			}
			return r.capture(list, inner)
		})
		return flowOn, nil
	}, nil
}

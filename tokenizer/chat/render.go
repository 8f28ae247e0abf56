package chat

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A renderer executes a template. What it may do is bounded: every byte that is made costs a unit
// of work, every part of an expression partWork of them, and every step and item stepWork.
type renderer struct {
	work  int
	depth int // of macros and of what is captured
	out   *strings.Builder

	generated []span // of the text, in {% generation %}
}

// errWork reports that a template does more than workMax.
var errWork = errors.New("the template does too much")

func (r *renderer) spend(n int) error {
	if r.work -= n; r.work < 0 {
		return errWork
	}
	return nil
}

func (r *renderer) write(s string) error {
	r.out.WriteString(s)
	return r.spend(len(s))
}

// scope are the variables of a part of a template.
type scope struct {
	vars map[string]any
	up   *scope
}

func (s *scope) inner() *scope { return &scope{make(map[string]any), s} }

func (s *scope) get(name string) any {
	for at := s; at != nil; at = at.up {
		if v, ok := at.vars[name]; ok {
			return v
		}
	}
	if f, ok := globals[name]; ok {
		return f
	}
	return undefined(name)
}

func (r *renderer) run(list []statement, s *scope) (flow, error) {
	for _, x := range list {
		if err := r.spend(stepWork); err != nil {
			return flowOn, err
		}
		how, err := x.do(r, s)
		if err != nil {
			var at lineError
			if !errors.As(err, &at) {
				err = lineError{x.line, err}
			}
			return flowOn, err
		}
		if how != flowOn {
			return how, nil
		}
	}
	return flowOn, nil
}

// lineError says where an error arose.
type lineError struct {
	line int
	err  error
}

func (e lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }
func (e lineError) Unwrap() error { return e.err }

// deeper bounds how deep macros call each other.
func (r *renderer) deeper() error {
	if r.depth++; r.depth > depthMax {
		return fmt.Errorf("macros call each other deeper than %d", depthMax)
	}
	return nil
}

// capture returns what statements write.
func (r *renderer) capture(list []statement, s *scope) (any, error) {
	if err := r.deeper(); err != nil {
		return nil, err
	}
	outer := r.out
	r.out = new(strings.Builder)
	_, err := r.run(list, s)
	text := r.out.String()
	r.out = outer
	r.depth--
	return text, err
}

func (r *renderer) call(f function, args []any, named *Dict) (any, error) {
	if err := r.spend(stepWork); err != nil {
		return nil, err
	}
	v, err := f(r, args, named)
	if s, ok := v.(string); ok && err == nil {
		err = r.spend(len(s))
	}
	return v, err
}

// text returns a value as a template prints it.
func (r *renderer) text(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case undefined:
		return "", nil
	}
	p := printer{r: r, item: ", ", colon: ": "}
	err := p.print(v, 0)
	return p.b.String(), err
}

// assign sets one variable, or several to the items of a list.
func (r *renderer) assign(s *scope, names []string, v any) error {
	if len(names) == 1 {
		s.vars[names[0]] = v
		return nil
	}
	items, err := r.items(v)
	if err == nil && len(items) != len(names) {
		err = fmt.Errorf("%d values for %d names", len(items), len(names))
	}
	if err != nil {
		return err
	}
	for i, n := range names {
		s.vars[n] = items[i]
	}
	return nil
}

// items returns what a loop runs over.
func (r *renderer) items(v any) ([]any, error) {
	var list []any
	switch v := v.(type) {
	case []any:
		return v, nil
	case undefined:
		return nil, nil
	case *Dict:
		for _, k := range v.keys {
			list = append(list, k)
		}
	case string:
		for _, c := range v {
			list = append(list, string(c))
		}
	default:
		return nil, fmt.Errorf("%s has no items", kindOf(v))
	}
	return list, r.spend(stepWork * len(list))
}

// field is v.name.
func (r *renderer) field(v any, name string) (any, error) {
	if err := r.spend(partWork); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case undefined:
		return nil, fmt.Errorf("%q is undefined, and has no %q", string(v), name)
	case *loop:
		return v.field(name), nil
	case *namespace:
		if x, ok := v.get(name); ok {
			return x, nil
		}
		return undefined(name), nil
	case *Dict:
		if f, ok := dictMethods[name]; ok {
			return method(f, v), nil
		}
		if x, ok := v.get(name); ok {
			return x, nil
		}
	case string:
		if f, ok := stringMethods[name]; ok {
			return method(f, v), nil
		}
	}
	return undefined(name), nil
}

// method returns a function whose first argument is v.
func method(f function, v any) function {
	return func(r *renderer, args []any, named *Dict) (any, error) {
		return f(r, append([]any{v}, args...), named)
	}
}

// field returns what a loop says of itself.
func (l *loop) field(name string) any {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.at + 1)
	case "index0":
		return int64(l.at)
	case "revindex":
		return int64(n - l.at)
	case "revindex0":
		return int64(n - l.at - 1)
	case "first":
		return l.at == 0
	case "last":
		return l.at == n-1
	case "length":
		return int64(n)
	case "previtem":
		if l.at > 0 {
			return l.items[l.at-1]
		}
	case "nextitem":
		if l.at+1 < n {
			return l.items[l.at+1]
		}
	case "cycle":
		return function(func(_ *renderer, args []any, _ *Dict) (any, error) {
			if len(args) == 0 {
				return nil, errors.New("cycle has no items")
			}
			return args[l.at%len(args)], nil
		})
	}
	return undefined("loop." + name)
}

// subscript is v[key].
func (r *renderer) subscript(v, key any) (any, error) {
	if err := r.spend(partWork); err != nil {
		return nil, err
	}
	if i, _, whole, ok := number(key); ok && whole {
		switch x := v.(type) {
		case []any:
			if i < 0 {
				i += int64(len(x))
			}
			if 0 <= i && i < int64(len(x)) {
				return x[i], nil
			}
			return undefined("an item"), nil
		case string:
			if err := r.spend(len(x)); err != nil {
				return nil, err
			}
			runes := []rune(x)
			if i < 0 {
				i += int64(len(runes))
			}
			if 0 <= i && i < int64(len(runes)) {
				return string(runes[i]), nil
			}
			return undefined("a character"), nil
		}
	}
	k, ok := key.(string)
	if u, is := v.(undefined); is {
		return nil, fmt.Errorf("%q is undefined, and has no items", string(u))
	}
	if d, is := v.(*Dict); is {
		if ok {
			if x, there := d.get(k); there {
				return x, nil
			}
			return r.field(v, k) // a method, as in Jinja
		}
		return undefined("an item"), nil
	}
	if ok {
		return r.field(v, k)
	}
	return undefined("an item"), nil
}

// slice is v[from:to:step].
func (r *renderer) slice(v any, at [3]any) (any, error) {
	var list []any
	text, isText := v.(string)
	switch x := v.(type) {
	case []any:
		list = x
	case string:
		for _, c := range x {
			list = append(list, c)
		}
	default:
		return nil, fmt.Errorf("%s cannot be sliced", kindOf(v))
	}
	if err := r.spend(stepWork*len(list) + len(text)); err != nil {
		return nil, err
	}
	n, step := int64(len(list)), int64(1)
	bound := func(v any, usual int64, low, high int64) (int64, error) {
		if v == nil {
			return usual, nil
		}
		i, _, whole, ok := number(v)
		if !ok || !whole {
			return 0, fmt.Errorf("%s is not a bound of a slice", kindOf(v))
		}
		if i < 0 {
			i += n
		}
		return min(max(i, low), high), nil
	}
	if at[2] != nil {
		i, _, whole, ok := number(at[2])
		if !ok || !whole || i == 0 {
			return nil, errors.New("a slice's step must be a number other than 0")
		}
		step = min(max(i, -n-1), n+1)
	}
	low, high, first, last := int64(0), n, int64(0), n
	if step < 0 {
		low, high, first, last = -1, n-1, n-1, -1
	}
	from, err := bound(at[0], first, low, high)
	if err != nil {
		return nil, err
	}
	to, err := bound(at[1], last, low, high)
	if err != nil {
		return nil, err
	}
	some := []any{}
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		some = append(some, list[i])
	}
	if !isText {
		return some, nil
	}
	var b strings.Builder
	for _, c := range some {
		b.WriteRune(c.(rune))
	}
	return b.String(), nil
}

// Python's str.strip and filter trim.
func strip(s, cut string, left, right bool) string {
	in := unicode.IsSpace
	if cut != "" {
		in = func(c rune) bool { return strings.ContainsRune(cut, c) }
	} else {
		in = func(c rune) bool { return unicode.IsSpace(c) || 0x1c <= c && c <= 0x1f }
	}
	if left {
		s = strings.TrimLeftFunc(s, in)
	}
	if right {
		s = strings.TrimRightFunc(s, in)
	}
	return s
}

// length returns the number of items or characters.
func (r *renderer) length(v any) (int64, error) {
	switch v := v.(type) {
	case string:
		return int64(utf8.RuneCountInString(v)), r.spend(len(v))
	case []any:
		return int64(len(v)), nil
	case *Dict:
		return int64(len(v.keys)), nil
	case undefined:
		return 0, nil
	}
	return 0, fmt.Errorf("%s has no length", kindOf(v))
}

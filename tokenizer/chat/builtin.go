package chat

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Raised is the error of a template that refuses a conversation by raise_exception.
type Raised string

func (e Raised) Error() string { return "the chat template refuses this: " + string(e) }

// text1 is a function of a text.
func text1(f func(s string) any) function {
	return func(r *renderer, args []any, _ *Dict) (any, error) {
		if len(args) != 1 {
			return nil, errors.New("it takes no arguments")
		}
		s, err := r.text(args[0])
		if err != nil {
			return nil, err
		}
		return f(s), r.spend(len(s))
	}
}

// argument returns argument i of a call, or the one with that name, or nil.
func argument(args []any, named *Dict, i int, name string) any {
	if i < len(args) {
		return args[i]
	}
	v, _ := named.get(name)
	return v
}

// texts returns the arguments, of which there must be from least to most, as texts.
func texts(args []any, least, most int) ([]string, error) {
	if len(args) < least || len(args) > most {
		return nil, fmt.Errorf("%d arguments, want %d to %d", len(args)-1, least-1, most-1)
	}
	var list []string
	for _, a := range args {
		s, ok := a.(string)
		if !ok {
			return nil, fmt.Errorf("%s where a text should be", kindOf(a))
		}
		list = append(list, s)
	}
	return list, nil
}

// textMethod is a method of texts that takes from least to most other texts.
func textMethod(least, most int, f func(s []string) any) function {
	return func(r *renderer, args []any, named *Dict) (any, error) {
		s, err := texts(args, least+1, most+1)
		if err == nil && len(named.keys) > 0 {
			err = fmt.Errorf("the argument %q is not known here", named.keys[0])
		}
		if err != nil {
			return nil, err
		}
		if err := r.spend(len(s[0])); err != nil {
			return nil, err
		}
		return f(s), nil
	}
}

// cutMost bounds the characters that a strip cuts off: it looks for each in all of them.
const cutMost = 256

var errCut = fmt.Errorf("more than %d bytes of characters to cut off", cutMost)

func stripMethod(left, right bool) function {
	return func(r *renderer, args []any, named *Dict) (any, error) {
		if len(args) == 2 && args[1] == nil {
			args = args[:1]
		}
		if len(args) == 2 {
			if cut, _ := args[1].(string); len(cut) > cutMost {
				return nil, errCut
			}
		}
		return textMethod(0, 1, func(s []string) any {
			if len(s) == 1 {
				return strip(s[0], "", left, right)
			}
			if s[1] == "" {
				return s[0]
			}
			return strip(s[0], s[1], left, right)
		})(r, args, named)
	}
}

// split is str.split and str.rsplit.
func split(fromRight bool) function {
	return func(r *renderer, args []any, named *Dict) (any, error) {
		s, _ := args[0].(string)
		most := -1
		if i, _, whole, ok := number(argument(args, named, 2, "maxsplit")); ok && whole {
			most = int(max(i, -1))
		}
		var parts []string
		switch by := argument(args, named, 1, "sep").(type) {
		case nil:
			if most >= 0 {
				return nil, errors.New("split at white space with a bound is not known here")
			}
			parts = strings.FieldsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || 0x1c <= c && c <= 0x1f })
		case string:
			if by == "" {
				return nil, errors.New("the separator is empty")
			}
			parts = strings.Split(s, by)
			if n := len(parts) - 1; most >= 0 && n > most {
				if fromRight {
					parts = append([]string{strings.Join(parts[:n-most+1], by)}, parts[n-most+1:]...)
				} else {
					parts = append(parts[:most], strings.Join(parts[most:], by))
				}
			}
		default:
			return nil, fmt.Errorf("%s is not a separator", kindOf(by))
		}
		return anys(parts), r.spend(len(s) + stepWork*len(parts))
	}
}

func anys(list []string) []any {
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}

// affix is str.startswith and str.endswith, which take a text or a list of them.
func affix(has func(s, part string) bool) function {
	return func(r *renderer, args []any, _ *Dict) (any, error) {
		if len(args) != 2 {
			return nil, errors.New("it takes one argument")
		}
		parts, ok := args[1].([]any)
		if !ok {
			parts = args[1:]
		}
		for _, p := range parts {
			s, err := texts([]any{args[0], p}, 2, 2)
			if err != nil {
				return nil, err
			}
			if has(s[0], s[1]) {
				return true, nil
			}
		}
		return false, nil
	}
}

func title(s string) any {
	inWord := false
	return strings.Map(func(c rune) rune {
		was := inWord
		inWord = unicode.IsLetter(c)
		if inWord && was {
			return unicode.ToLower(c)
		}
		return unicode.ToTitle(c)
	}, s)
}

func capitalize(s string) any {
	runes := []rune(strings.ToLower(s))
	if len(runes) > 0 {
		runes[0] = unicode.ToTitle(runes[0])
	}
	return string(runes)
}

// replace is str.replace, and the filter.
func replace(r *renderer, args []any, _ *Dict) (any, error) {
	most := -1
	if len(args) == 4 {
		i, _, whole, ok := number(args[3])
		if !ok || !whole {
			return nil, errors.New("the number of replacements is none")
		}
		most, args = int(i), args[:3]
	}
	s, err := texts(args, 3, 3)
	if err != nil {
		return nil, err
	}
	n := strings.Count(s[0], s[1])
	if most >= 0 {
		n = min(n, most)
	}
	if len(s[2]) > 0 && n > workMax/len(s[2]) {
		return nil, errWork
	}
	if err := r.spend(len(s[0]) + n*len(s[2])); err != nil {
		return nil, err
	}
	return strings.Replace(s[0], s[1], s[2], most), nil
}

// position returns an index in bytes as one in characters.
func position(s string, at int) any {
	if at < 0 {
		return int64(-1)
	}
	return int64(len([]rune(s[:at])))
}

var stringMethods = map[string]function{
	"strip":  stripMethod(true, true),
	"lstrip": stripMethod(true, false),
	"rstrip": stripMethod(false, true),
	"split":  split(false),
	"rsplit": split(true),
	"splitlines": textMethod(0, 0, func(s []string) any {
		if s[0] == "" {
			return []any{}
		}
		return anys(strings.Split(strings.TrimSuffix(s[0], "\n"), "\n"))
	}),
	"startswith":   affix(strings.HasPrefix),
	"endswith":     affix(strings.HasSuffix),
	"upper":        textMethod(0, 0, func(s []string) any { return strings.ToUpper(s[0]) }),
	"lower":        textMethod(0, 0, func(s []string) any { return strings.ToLower(s[0]) }),
	"title":        textMethod(0, 0, func(s []string) any { return title(s[0]) }),
	"capitalize":   textMethod(0, 0, func(s []string) any { return capitalize(s[0]) }),
	"removeprefix": textMethod(1, 1, func(s []string) any { return strings.TrimPrefix(s[0], s[1]) }),
	"removesuffix": textMethod(1, 1, func(s []string) any { return strings.TrimSuffix(s[0], s[1]) }),
	"find":         textMethod(1, 1, func(s []string) any { return position(s[0], strings.Index(s[0], s[1])) }),
	"rfind":        textMethod(1, 1, func(s []string) any { return position(s[0], strings.LastIndex(s[0], s[1])) }),
	"count":        textMethod(1, 1, func(s []string) any { return int64(strings.Count(s[0], s[1])) }),
	"isdigit": textMethod(0, 0, func(s []string) any {
		return s[0] != "" && strings.IndexFunc(s[0], func(c rune) bool { return !unicode.IsDigit(c) }) < 0
	}),
	"replace": replace,
	"join": func(r *renderer, args []any, _ *Dict) (any, error) {
		return r.join(argument(args, &Dict{}, 1, ""), args[0])
	},
}

func (r *renderer) join(list, by any) (any, error) {
	items, err := r.items(list)
	if err != nil {
		return nil, err
	}
	sep, _ := by.(string)
	var b strings.Builder
	for i, v := range items {
		s, err := r.text(v)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(s)
		if err := r.spend(len(s) + len(sep)); err != nil {
			return nil, err
		}
	}
	return b.String(), nil
}

var dictMethods = map[string]function{
	"items":  pairs,
	"keys":   func(r *renderer, args []any, _ *Dict) (any, error) { return r.items(args[0]) },
	"values": func(r *renderer, args []any, _ *Dict) (any, error) { return r.values(args[0]) },
	"get": func(_ *renderer, args []any, _ *Dict) (any, error) {
		if len(args) < 2 || len(args) > 3 {
			return nil, errors.New("get takes a key and a value")
		}
		if k, ok := args[1].(string); ok {
			if v, ok := args[0].(*Dict).get(k); ok {
				return v, nil
			}
		}
		return argument(args, &Dict{}, 2, ""), nil
	},
	"copy": func(r *renderer, args []any, _ *Dict) (any, error) {
		d := args[0].(*Dict)
		return d.clone(), r.spend(stepWork * len(d.keys))
	},
}

func (r *renderer) values(v any) (any, error) {
	d := v.(*Dict)
	list := make([]any, len(d.keys))
	for i, k := range d.keys {
		list[i] = d.values[k]
	}
	return list, r.spend(stepWork * len(list))
}

// pairs is dict.items and the filter items.
func pairs(r *renderer, args []any, _ *Dict) (any, error) {
	if _, ok := args[0].(undefined); ok {
		return []any{}, nil
	}
	d, ok := args[0].(*Dict)
	if !ok {
		return nil, fmt.Errorf("%s is not a mapping", kindOf(args[0]))
	}
	list := make([]any, len(d.keys))
	for i, k := range d.keys {
		list[i] = []any{k, d.values[k]}
	}
	return list, r.spend(3 * stepWork * len(list))
}

var globals = map[string]function{
	"raise_exception": func(r *renderer, args []any, _ *Dict) (any, error) {
		if len(args) != 1 {
			return nil, Raised("")
		}
		s, err := r.text(args[0])
		if err != nil {
			return nil, err
		}
		return nil, Raised(s)
	},
	"namespace": func(_ *renderer, args []any, named *Dict) (any, error) {
		d, err := asDict(args, named)
		if err != nil {
			return nil, err
		}
		return &namespace{*d}, nil
	},
	"dict": func(_ *renderer, args []any, named *Dict) (any, error) { return asDict(args, named) },
	"range": func(r *renderer, args []any, _ *Dict) (any, error) {
		var at [3]int64
		for i, a := range args {
			n, _, whole, ok := number(a)
			if !ok || !whole || i > 2 {
				return nil, errors.New("range takes 1 to 3 whole numbers")
			}
			at[i] = n
		}
		from, to, step := at[0], at[1], at[2]
		switch len(args) {
		case 0:
			return nil, errors.New("range takes 1 to 3 whole numbers")
		case 1:
			from, to, step = 0, at[0], 1
		case 2:
			step = 1
		}
		const most = 1 << 40
		if step == 0 || max(from, to, step) > most || min(from, to, step) < -most {
			return nil, errors.New("range has a bound or a step that cannot be")
		}
		list := []any{}
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			if err := r.spend(stepWork); err != nil {
				return nil, err
			}
			list = append(list, i)
		}
		return list, nil
	},
}

// asDict is dict(mapping, key=value).
func asDict(args []any, named *Dict) (*Dict, error) {
	d := &Dict{}
	if len(args) > 0 {
		from, ok := args[0].(*Dict)
		if !ok || len(args) > 1 {
			return nil, errors.New("it takes one mapping, and named values")
		}
		d = from.clone()
	}
	for _, k := range named.keys {
		d.set(k, named.values[k])
	}
	return d, nil
}

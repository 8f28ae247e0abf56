package chat

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// length and usual are filters with two names each.
func length(r *renderer, args []any, _ *Dict) (any, error) { return r.length(args[0]) }

func usual(_ *renderer, args []any, named *Dict) (any, error) {
	_, missing := args[0].(undefined)
	if b := argument(args, named, 2, "boolean"); missing || b != nil && truth(b) && !truth(args[0]) {
		v := argument(args, named, 1, "default_value")
		if v == nil && len(args) < 2 {
			v = ""
		}
		return v, nil
	}
	return args[0], nil
}

// end is the filter of an item at one end.
func end(at int64) function {
	return func(r *renderer, args []any, _ *Dict) (any, error) {
		items, err := r.items(args[0])
		if err != nil {
			return nil, err
		}
		return r.subscript(items, at)
	}
}

var filters = map[string]function{
	"trim": func(r *renderer, args []any, named *Dict) (any, error) {
		s, err := r.text(args[0])
		if err != nil {
			return nil, err
		}
		cut, _ := argument(args, named, 1, "chars").(string)
		if len(cut) > cutMost {
			return nil, errCut
		}
		return strip(s, cut, true, true), r.spend(len(s))
	},
	"length": length, "count": length,
	"default": usual, "d": usual,
	"string":     text1(func(s string) any { return s }),
	"safe":       text1(func(s string) any { return s }),
	"upper":      text1(func(s string) any { return strings.ToUpper(s) }),
	"lower":      text1(func(s string) any { return strings.ToLower(s) }),
	"title":      text1(func(s string) any { return title(s) }),
	"capitalize": text1(func(s string) any { return capitalize(s) }),
	"replace":    replace,
	"first":      end(0),
	"last":       end(-1),
	"items":      pairs,
	"list": func(r *renderer, args []any, _ *Dict) (any, error) {
		items, err := r.items(args[0])
		if items == nil {
			items = []any{}
		}
		return items, err
	},
	"reverse": func(r *renderer, args []any, _ *Dict) (any, error) {
		return r.slice(args[0], [3]any{nil, nil, int64(-1)})
	},
	"join": func(r *renderer, args []any, named *Dict) (any, error) {
		if field := argument(args, named, 2, "attribute"); field != nil {
			return nil, errors.New("the argument \"attribute\" is not known here")
		}
		return r.join(args[0], argument(args, named, 1, "d"))
	},
	"int": func(_ *renderer, args []any, named *Dict) (any, error) {
		if i, f, whole, ok := number(args[0]); ok {
			if !whole {
				i = int64(f)
			}
			return i, nil
		}
		if s, ok := args[0].(string); ok {
			if i, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64); err == nil {
				return i, nil
			}
		}
		if v := argument(args, named, 1, "default"); v != nil {
			return v, nil
		}
		return int64(0), nil
	},
	"abs": func(r *renderer, args []any, _ *Dict) (any, error) {
		if low, err := r.less(args[0], int64(0)); err != nil || !low {
			return args[0], err
		}
		return r.compute("-", int64(0), args[0])
	},
	"indent": func(r *renderer, args []any, named *Dict) (any, error) {
		s, err := r.text(args[0])
		if err != nil {
			return nil, err
		}
		n, _, whole, ok := number(argument(args, named, 1, "width"))
		if !ok {
			n, whole = 4, true
		}
		if !whole || n < 0 || n > 100 {
			return nil, errors.New("the width is not 0 to 100")
		}
		lines := strings.Split(s, "\n")
		for i, line := range lines {
			if i > 0 && line != "" || i == 0 && truth(argument(args, named, 2, "first")) {
				lines[i] = strings.Repeat(" ", int(n)) + line
			}
		}
		return strings.Join(lines, "\n"), r.spend(len(s) + int(n)*len(lines))
	},
	"tojson":     toJSON,
	"selectattr": selecting(true, true),
	"rejectattr": selecting(true, false),
	"select":     selecting(false, true),
	"reject":     selecting(false, false),
	"unique": func(r *renderer, args []any, _ *Dict) (any, error) {
		items, err := r.items(args[0])
		list := []any{}
		for _, item := range items {
			there, err := r.contains(list, item)
			if err != nil {
				return nil, err
			}
			if !there {
				list = append(list, item)
			}
		}
		return list, err
	},
	"dictsort": func(r *renderer, args []any, named *Dict) (any, error) {
		if len(args) > 1 || len(named.keys) > 0 {
			return nil, errors.New("arguments are not known here")
		}
		v, err := pairs(r, args, named)
		if err != nil {
			return nil, err
		}
		list := v.([]any)
		key := func(i int) string { return strings.ToLower(list[i].([]any)[0].(string)) }
		sort.SliceStable(list, func(i, j int) bool { return key(i) < key(j) })
		return list, nil
	},
}

func init() { filters["map"] = mapped } // which looks filters up

// mapped is the filter map.
func mapped(r *renderer, args []any, named *Dict) (any, error) {
	items, err := r.items(args[0])
	if err != nil {
		return nil, err
	}
	field, byField := argument(nil, named, 0, "attribute").(string)
	f := function(nil)
	if !byField {
		name, _ := argument(args, named, 1, "").(string)
		if f = filters[name]; f == nil {
			return nil, fmt.Errorf("the filter %q is not known here", name)
		}
	}
	list := make([]any, len(items))
	for i, item := range items {
		if byField {
			list[i], err = r.path(item, field)
		} else {
			list[i], err = r.call(f, append([]any{item}, args[2:]...), &Dict{})
		}
		if err != nil {
			return nil, err
		}
	}
	return list, r.spend(stepWork * len(list))
}

// path is item.field, where field may have points.
func (r *renderer) path(item any, field string) (v any, err error) {
	v = item
	for _, name := range strings.Split(field, ".") {
		if v, err = r.subscript(v, name); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// selecting is select, reject, selectattr and rejectattr.
func selecting(byField, keep bool) function {
	return func(r *renderer, args []any, _ *Dict) (any, error) {
		items, err := r.items(args[0])
		if err != nil {
			return nil, err
		}
		args = args[1:]
		field := ""
		if byField {
			if len(args) == 0 {
				return nil, errors.New("it takes an attribute")
			}
			field, _ = args[0].(string)
			args = args[1:]
		}
		name, f := "", test(nil)
		if len(args) > 0 {
			name, _ = args[0].(string)
			if f = tests[name]; f == nil {
				return nil, fmt.Errorf("the test %q is not known here", name)
			}
			args = args[1:]
		}
		list := []any{}
		for _, item := range items {
			v := item
			if byField {
				if v, err = r.path(item, field); err != nil {
					return nil, err
				}
			}
			ok := truth(v)
			if f != nil {
				if ok, err = r.test(name, f, v, args); err != nil {
					return nil, err
				}
			}
			if ok == keep {
				list = append(list, item)
			}
		}
		return list, r.spend(stepWork * len(items))
	}
}

// toJSON is json.dumps as transformers calls it.
func toJSON(r *renderer, args []any, named *Dict) (any, error) {
	p := printer{r: r, json: true, item: ", ", colon: ": "}
	// The positions are those of transformers' own filter.
	if n, _, whole, ok := number(argument(args, named, 2, "indent")); ok {
		if !whole || n < 1 || n > 100 {
			return nil, errors.New("the indent is not 1 to 100")
		}
		p.indent, p.item = strings.Repeat(" ", int(n)), ","
	}
	if v := argument(args, named, 3, "separators"); v != nil {
		two, ok := v.([]any)
		if !ok || len(two) != 2 {
			return nil, errors.New("the separators are not two texts")
		}
		s, err := texts(two, 2, 2)
		if err != nil {
			return nil, err
		}
		p.item, p.colon = s[0], s[1]
	}
	p.sorted = truth(argument(args, named, 4, "sort_keys"))
	if truth(argument(args, named, 1, "ensure_ascii")) {
		return nil, errors.New("the argument \"ensure_ascii\" is not known here")
	}
	err := p.print(args[0], 0)
	return p.b.String(), err
}

package chat

import (
	"fmt"
)

// A test reports whether v is something, given an argument or nil.
type test func(r *renderer, v, arg any) (bool, error)

// withArgument are the tests that take an argument.
var withArgument = map[string]bool{"equalto": true, "eq": true, "ne": true, "in": true, "divisibleby": true, "sameas": true, "lt": true, "gt": true, "le": true, "ge": true}

func (r *renderer) test(name string, f test, v any, args []any) (bool, error) {
	want := 0
	if withArgument[name] {
		want = 1
	}
	if len(args) != want {
		return false, fmt.Errorf("the test %q takes %d arguments, not %d", name, want, len(args))
	}
	if err := r.spend(stepWork); err != nil {
		return false, err
	}
	return f(r, v, argument(args, &Dict{}, 0, ""))
}

// isIt returns a test of a value alone.

func isIt(f func(v any) bool) test {
	return func(_ *renderer, v, _ any) (bool, error) { return f(v), nil }
}

func compares(op string) test {
	return func(r *renderer, v, arg any) (bool, error) { return r.holds(op, v, arg) }
}

func remainder(want int64, with any) test {
	return func(r *renderer, v, arg any) (bool, error) {
		if with != nil {
			arg = with
		}
		m, err := r.compute("%", v, arg)
		return err == nil && m == want, err
	}
}

func isMissing(v any) bool { _, ok := v.(undefined); return ok }

func isWhole(v any) bool { _, ok := v.(int64); return ok }

func isReal(v any) bool { _, ok := v.(float64); return ok }

func isLogical(v any) bool { _, ok := v.(bool); return ok }

func isText(v any) bool { _, ok := v.(string); return ok }

func isMapping(v any) bool { _, ok := v.(*Dict); return ok }

func isList(v any) bool { _, ok := v.([]any); return ok }

var sequence = isIt(func(v any) bool { return isText(v) || isMapping(v) || isList(v) || isMissing(v) })

var tests = map[string]test{
	"defined":     isIt(func(v any) bool { return !isMissing(v) }),
	"undefined":   isIt(isMissing),
	"none":        isIt(func(v any) bool { return v == nil }),
	"string":      isIt(isText),
	"mapping":     isIt(isMapping),
	"iterable":    sequence,
	"sequence":    sequence,
	"number":      isIt(func(v any) bool { return isWhole(v) || isReal(v) || isLogical(v) }),
	"integer":     isIt(isWhole),
	"float":       isIt(isReal),
	"boolean":     isIt(isLogical),
	"true":        isIt(func(v any) bool { return v == true }),
	"false":       isIt(func(v any) bool { return v == false }),
	"callable":    isIt(func(v any) bool { _, ok := v.(function); return ok }),
	"equalto":     compares("=="),
	"eq":          compares("=="),
	"ne":          compares("!="),
	"lt":          compares("<"),
	"gt":          compares(">"),
	"le":          compares("<="),
	"ge":          compares(">="),
	"in":          compares("in"),
	"odd":         remainder(1, int64(2)),
	"even":        remainder(0, int64(2)),
	"divisibleby": remainder(0, nil),
	"sameas":      compares("=="),
}

package main

import (
	"fmt"
	"regexp"
	"strings"
)

// The machine has neither floats nor signed division. An operation on floats becomes a call of a
// function of chain/solana/toolchain/float.c, on their bits; loads, stores and choices stay, which
// LLVM's backend makes moves of integers.

var (
	binaryOp   = regexp.MustCompile(`^(\s*)(%\S+) = f(add|sub|mul|div) (float|double) (\S+), (\S+)$`)
	compare    = regexp.MustCompile(`^(\s*)(%\S+) = fcmp ([a-z]+) (float|double) (\S+), (\S+)$`)
	negate     = regexp.MustCompile(`^(\s*)(%\S+) = fneg (float|double) (\S+)$`)
	absolute   = regexp.MustCompile(`^(\s*)(%\S+) = (?:tail )?call (?:noundef )?(float|double) @llvm\.fabs\.f\d+\((?:float|double) (?:noundef )?(\S+)\).*$`)
	root       = regexp.MustCompile(`^(\s*)(%\S+) = (?:tail )?call (?:noundef )?(float|double) @llvm\.sqrt\.f\d+\((?:float|double) (?:noundef )?(\S+)\).*$`)
	resize     = regexp.MustCompile(`^(\s*)(%\S+) = fp(?:ext|trunc) (float|double) (\S+) to (float|double)$`)
	toFloat    = regexp.MustCompile(`^(\s*)(%\S+) = ([su])itofp (?:nneg )?(i\d+) (\S+) to (float|double)$`)
	toInteger  = regexp.MustCompile(`^(\s*)(%\S+) = fpto([su])i (float|double) (\S+) to (i\d+)$`)
	signed     = regexp.MustCompile(`^(\s*)(%\S+) = s(div|rem) (?:exact )?(i\d+) (\S+), (\S+)$`)
	arithmetic = regexp.MustCompile(`^\s*%\S+ = (?:f(?:add|sub|mul|div|rem|cmp|neg|pext|ptrunc|ptosi|ptoui)|[su]itofp) |call .*(?:float|double|float>|double>) @llvm\.`)
)

// comparisons are the results of f32_cmp and f64_cmp for which a comparison holds.
var comparisons = map[string]int{
	"olt": 1, "oeq": 2, "ogt": 4, "ole": 3, "oge": 6, "one": 5, "ord": 7,
	"ult": 9, "ueq": 10, "ugt": 12, "ule": 11, "uge": 14, "une": 13, "uno": 8,
}

// words are the integers with the bits of floats, and how functions name them.
var (
	words = map[string]string{"float": "i32", "double": "i64"}
	names = map[string]string{"float": "f32", "double": "f64"}
)

// floats adds the functions that float may call.
func floats(declarations map[string]string) map[string]string {
	add := func(to, name, args string) {
		declarations[name] = fmt.Sprintf("declare %s @%s(%s) nounwind memory(none)", to, name, args)
	}
	for of, w := range words {
		n := names[of]
		for _, op := range []string{"add", "sub", "mul", "div"} {
			add(w, n+"_"+op, w+", "+w)
		}
		add("i32", n+"_cmp", w+", "+w)
		for _, i := range []string{"i64", "u64"} {
			add("i64", n+"_to_"+i, w)
			add(w, i+"_to_"+n, "i64")
		}
	}
	add("i64", "f32_to_f64", "i32")
	add("i32", "f64_to_f32", "i64")
	add("i64", "f64_sqrt", "i64")
	return declarations
}

// float returns a line with an operation on floats as lines that call a function.
func (r *rewriter) float(l string) (string, error) {
	if at := binaryOp.FindStringSubmatch(l); at != nil {
		return r.call(at[1], at[2], at[4], names[at[4]]+"_"+at[3], at[4], at[5], at[6]), nil
	}
	if at := signed.FindStringSubmatch(l); at != nil {
		return r.divide(at[1], at[2], at[3], at[4], at[5], at[6]), nil
	}
	if at := compare.FindStringSubmatch(l); at != nil {
		mask, ok := comparisons[at[3]]
		if !ok {
			return "", fmt.Errorf("a comparison of floats is not known: %s", strings.TrimSpace(l))
		}
		n := r.next()
		return r.call(at[1], n, "i32", names[at[4]]+"_cmp", at[4], at[5], at[6]) + fmt.Sprintf("\n%s%s.m = and i32 %s, %d\n%s%s = icmp ne i32 %s.m, 0", at[1], n, n, mask, at[1], at[2], n), nil
	}
	if at := negate.FindStringSubmatch(l); at != nil {
		return r.sign(at[1], at[2], at[3], at[4], "xor"), nil
	}
	if at := absolute.FindStringSubmatch(l); at != nil {
		return r.sign(at[1], at[2], at[3], at[4], "and"), nil
	}
	if at := root.FindStringSubmatch(l); at != nil && at[3] == "double" {
		return r.call(at[1], at[2], "double", "f64_sqrt", "double", at[4]), nil
	}
	if at := resize.FindStringSubmatch(l); at != nil {
		return r.call(at[1], at[2], at[5], names[at[3]]+"_to_"+names[at[5]], at[3], at[4]), nil
	}
	if at := toFloat.FindStringSubmatch(l); at != nil {
		value, before := at[5], ""
		if at[4] != "i64" {
			n := r.next()
			before = fmt.Sprintf("%s%s = %sext %s %s to i64\n", at[1], n, map[string]string{"s": "s", "u": "z"}[at[3]], at[4], value)
			value = n
		}
		function := map[string]string{"s": "i64", "u": "u64"}[at[3]] + "_to_" + names[at[6]]
		return before + r.call(at[1], at[2], at[6], function, "i64", value), nil
	}
	if at := toInteger.FindStringSubmatch(l); at != nil {
		function := names[at[4]] + "_to_" + map[string]string{"s": "i64", "u": "u64"}[at[3]]
		if at[6] == "i64" {
			return r.call(at[1], at[2], "i64", function, at[4], at[5]), nil
		}
		n := r.next()
		return r.call(at[1], n, "i64", function, at[4], at[5]) + fmt.Sprintf("\n%s%s = trunc i64 %s to %s", at[1], at[2], n, at[6]), nil
	}
	if arithmetic.MatchString(l) {
		return "", fmt.Errorf("an operation on floats is not known: %s", strings.TrimSpace(l))
	}
	return l, nil
}

func (r *rewriter) next() string {
	r.values++
	return fmt.Sprintf("%%sbf.v%d", r.values)
}

// call returns a call of a function on arguments of a type, whose result is a value of type to.
func (r *rewriter) call(indent, value, to, function, of string, args ...string) string {
	var b strings.Builder
	list := make([]string, len(args))
	for i, a := range args {
		list[i] = of + " " + a
		if w, ok := words[of]; ok {
			n := r.next()
			fmt.Fprintf(&b, "%s%s = bitcast %s %s to %s\n", indent, n, of, a, w)
			list[i] = w + " " + n
		}
	}
	w, ok := words[to]
	if !ok {
		fmt.Fprintf(&b, "%s%s = call %s @%s(%s)", indent, value, to, function, strings.Join(list, ", "))
		return b.String()
	}
	n := r.next()
	fmt.Fprintf(&b, "%s%s = call %s @%s(%s)\n%s%s = bitcast %s %s to %s", indent, n, w, function, strings.Join(list, ", "), indent, value, w, n, to)
	return b.String()
}

// divide returns a signed division, which the machine does not have, by an unsigned one.
func (r *rewriter) divide(indent, value, op, of, a, b string) string {
	var text strings.Builder
	step := func(format string, args ...any) string {
		n := r.next()
		fmt.Fprintf(&text, "%s%s = %s\n", indent, n, fmt.Sprintf(format, args...))
		return n
	}
	magnitude := func(v string) (sign, size string) {
		sign = step("ashr %s %s, %s", of, v, map[string]string{"i16": "15", "i32": "31", "i64": "63"}[of])
		return sign, step("sub %s %s, %s", of, step("xor %s %s, %s", of, v, sign), sign)
	}
	sign, x := magnitude(a)
	other, y := magnitude(b)
	if op == "div" {
		sign = step("xor %s %s, %s", of, sign, other)
	}
	result := step("xor %s %s, %s", of, step("u%s %s %s, %s", op, of, x, y), sign)
	fmt.Fprintf(&text, "%s%s = sub %s %s, %s", indent, value, of, result, sign)
	return text.String()
}

// sign returns the operation op on the sign of a float: xor turns it, and takes it off.
func (r *rewriter) sign(indent, value, of, arg, op string) string {
	mask := map[string]string{"floatxor": "-2147483648", "floatand": "2147483647", "doublexor": "-9223372036854775808", "doubleand": "9223372036854775807"}[of+op]
	from, to := r.next(), r.next()
	return fmt.Sprintf("%s%s = bitcast %s %s to %s\n%s%s = %s %s %s, %s\n%s%s = bitcast %s %s to %s",
		indent, from, of, arg, words[of], indent, to, op, words[of], from, mask, indent, value, words[of], to, of)
}

package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// layout is LLVM's data layout of 64-bit BPF, little endian.
const layout = "e-m:e-p:64:64-i64:64-i128:128-n32:64-S128"

// inlineMax is the longest copy that the backend writes out; longer ones are calls of the machine.
const inlineMax = 256

// declarations are the machine's functions that rewrite may call.
var declarations = floats(map[string]string{
	"abort":        "declare void @abort() noreturn nounwind",
	"sol_memcpy_":  "declare void @sol_memcpy_(ptr, ptr, i64)",
	"sol_memmove_": "declare void @sol_memmove_(ptr, ptr, i64)",
	"sol_memset_":  "declare void @sol_memset_(ptr, i64, i64)",
})

var (
	memory = regexp.MustCompile(`(?:tail )?call void @llvm\.(memcpy|memmove|memset)(?:\.inline)?\.p0(?:\.p0)?\.i64\((.*), i1 (?:false|immarg false)\)`)
	trap   = regexp.MustCompile(`(?:tail )?call void @llvm\.trap\(\)`)
	target = regexp.MustCompile(` ?"(?:target-cpu|target-features|tune-cpu|frame-pointer|probe-stack|stack-protector-buffer-size)"="[^"]*"`)
	attrs  = regexp.MustCompile(`\b(?:align \d+|noundef|nonnull|nocapture|captures\(none\)|readonly|writeonly|noalias|readnone|dereferenceable(?:_or_null)?\(\d+\)|immarg) `)
	unwind = regexp.MustCompile(` uwtable(?:\(\w+\))?`)
	debug  = regexp.MustCompile(`, !(?:dbg|tbaa|tbaa\.struct) ![0-9]+`)
	empty  = regexp.MustCompile(`\{ *\}$`)
)

// rewrite copies IR of another machine as IR for BPF: target and layout are BPF's, attributes of
// the other machine go, and copies and traps that the backend would make calls of a library from
// become calls of Solana's machine.
func rewrite(out io.Writer, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<26)
	r := rewriter{declared: map[string]bool{}}
	for lines.Scan() {
		line, err := r.float(r.line(lines.Text()))
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	var names []string
	for name := range declarations {
		if !r.declared[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintln(out, declarations[name])
	}
	return lines.Err()
}

type rewriter struct {
	declared map[string]bool
	values   int // made so far
}

func (r *rewriter) line(l string) string {
	switch {
	case strings.HasPrefix(l, "target datalayout"):
		return `target datalayout = "` + layout + `"`
	case strings.HasPrefix(l, "target triple"):
		return `target triple = "bpfel"`
	case strings.HasPrefix(l, "attributes #"):
		return empty.ReplaceAllString(unwind.ReplaceAllString(target.ReplaceAllString(l, ""), ""), "{ nounwind }")
	case strings.HasPrefix(l, "declare"), strings.HasPrefix(l, "define"):
		for name := range declarations {
			if strings.Contains(l, "@"+name+"(") {
				r.declared[name] = true
			}
		}
	}
	l = trap.ReplaceAllString(r.copies(l), "call void @abort()")
	return debug.ReplaceAllString(l, "")
}

// copies returns a line with a long copy as a call of the machine. The value of a memset is widened
// on a line before.
func (r *rewriter) copies(l string) string {
	at := memory.FindStringSubmatchIndex(l)
	if at == nil {
		return l
	}
	op, args := l[at[2]:at[3]], arguments(l[at[4]:at[5]])
	for i := range args {
		args[i] = strings.TrimSpace(attrs.ReplaceAllString(args[i]+" ", ""))
	}
	if size, err := strconv.Atoi(strings.TrimPrefix(args[2], "i64 ")); err == nil && size <= inlineMax {
		return l
	}
	before := ""
	if op == "memset" {
		value := strings.TrimPrefix(args[1], "i8 ")
		if _, err := strconv.Atoi(value); err != nil {
			r.values++
			before = fmt.Sprintf("  %%sbf.wide%d = zext i8 %s to i64\n", r.values, value)
			value = fmt.Sprintf("%%sbf.wide%d", r.values)
		}
		args[1] = "i64 " + value
	}
	return before + l[:at[0]] + "call void @sol_" + op + "_(" + strings.Join(args, ", ") + ")"
}

// arguments splits a list at its commas, but not those within brackets.
func arguments(s string) []string {
	var list []string
	depth, begin := 0, 0
	for i, c := range s {
		switch c {
		case '(', '[', '{', '<':
			depth++
		case ')', ']', '}', '>':
			depth--
		case ',':
			if depth == 0 {
				list = append(list, strings.TrimSpace(s[begin:i]))
				begin = i + 1
			}
		}
	}
	return append(list, strings.TrimSpace(s[begin:]))
}

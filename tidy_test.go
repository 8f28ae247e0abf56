package entrain_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// Limits of size. A function of 70 lines fits a screen; a file of 500 is one theme; a package of 5,000 is read in a day.
const (
	functionLinesMax = 70
	fileLinesMax     = 500
	packageLinesMax  = 5000
)

// longFunctions may exceed functionLinesMax, each for the reason given: "dir.Function" or "dir.Type.Method".
var longFunctions = map[string]string{}

// tidyRules are the rules about the text of every package.
var tidyRules = []struct {
	name   string
	faults func(*tree) []string
}{
	{"package comments", commentFaults},
	{"sizes", sizeFaults},
	{"formatting", formatFaults},
	{"pure packages", pureFaults},
	{"chance", chanceFaults},
}

func TestTreeIsTidy(t *testing.T) {
	parsed, err := parsedTree()
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range tidyRules {
		t.Run(rule.name, func(t *testing.T) {
			for _, fault := range rule.faults(parsed) {
				t.Error(fault)
			}
		})
	}
}

// commentFaults returns the packages whose comment is missing, begins with other words than it should, or stands in several
// files.
func commentFaults(t *tree) []string {
	var faults []string
	for _, p := range t.packages {
		files := p.code()
		if len(files) == 0 {
			continue // tests only
		}
		var commented []*sourceFile
		for _, f := range files {
			if f.ast.Doc != nil {
				commented = append(commented, f)
			}
		}
		name := files[0].ast.Name.Name
		openings := []string{"Package " + name + " "}
		if name == "main" {
			openings = []string{"Command ", "Entrain "}
		}
		if len(commented) != 1 {
			faults = append(faults, t.fault(files[0].ast.Package, "package %s has its comment in %d files; one should begin %q",
				name, len(commented), openings[0]))
			continue
		}
		text := commented[0].ast.Doc.Text()
		if !slices.ContainsFunc(openings, func(o string) bool { return strings.HasPrefix(text, o) }) {
			first, _, _ := strings.Cut(text, "\n")
			faults = append(faults, t.fault(commented[0].ast.Package, "the comment of package %s begins %q, not %q", name, first, openings[0]))
		}
	}
	return faults
}

// sizeFaults returns the functions, files and packages that are too long. Tests and generated files may be of any length.
func sizeFaults(t *tree) []string {
	var faults []string
	for _, p := range t.packages {
		all := 0
		for _, f := range p.code() {
			if f.isGenerated() {
				continue
			}
			n := bytes.Count(f.text, []byte("\n"))
			if all += n; n > fileLinesMax {
				faults = append(faults, t.fault(f.ast.Package, "the file has %d lines, at most %d are allowed: split it by theme", n, fileLinesMax))
			}
			for _, d := range f.ast.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || longFunctions[functionName(p, fn)] != "" {
					continue
				}
				n := t.fset.Position(fn.End()).Line - t.fset.Position(fn.Pos()).Line + 1
				if n > functionLinesMax {
					faults = append(faults, t.fault(fn.Pos(), "function %s has %d lines, at most %d are allowed: move work into leaves",
						functionName(p, fn), n, functionLinesMax))
				}
			}
		}
		if all > packageLinesMax {
			faults = append(faults, fmt.Sprintf("package %s has %d lines, at most %d are allowed: move a room of its own into a package", p.dir, all, packageLinesMax))
		}
	}
	return faults
}

// functionName returns the name of a function as in longFunctions.
func functionName(p *sourcePackage, fn *ast.FuncDecl) string {
	name := fn.Name.Name
	if fn.Recv != nil && len(fn.Recv.List) == 1 {
		of := fn.Recv.List[0].Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		switch generic := of.(type) {
		case *ast.IndexExpr:
			of = generic.X
		case *ast.IndexListExpr:
			of = generic.X
		}
		if ident, ok := of.(*ast.Ident); ok {
			name = ident.Name + "." + name
		}
	}
	return p.dir + "." + name
}

// formatFaults returns the files that gofmt would change.
func formatFaults(t *tree) []string {
	var faults []string
	for _, p := range t.packages {
		for _, f := range p.files {
			formatted, err := format.Source(f.text)
			if err != nil || !bytes.Equal(formatted, f.text) {
				faults = append(faults, t.fault(f.ast.Package, "the file is not as gofmt writes it"))
			}
		}
	}
	return faults
}

// impureImports are what a pure package does without: files, sockets, the environment, threads and chance. A path that ends
// in a slash stands for all packages below it.
var impureImports = []string{"os", "os/", "net", "net/", "io/ioutil", "syscall", "plugin", "log", "log/", "crypto/rand",
	"runtime", "runtime/", "sync", "sync/", "golang.org/x/sys/"}

// kernelImports are what exact and exact8 may import besides: its workers share a matrix product, whose result does not depend on them.
var kernelImports = []string{"runtime", "sync", "sync/", "golang.org/x/sys/"}

// clockNames are what of package time reads a clock or waits for one; durations and points in time as values are pure.
var clockNames = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Local", "LoadLocation"}

// pureFaults returns where the code of a pure package reaches for the world outside.
func pureFaults(t *tree) []string {
	var faults []string
	for _, p := range t.packages {
		if !within(p.dir, lastPure) {
			continue
		}
		for _, f := range p.code() {
			for _, imp := range f.imports() {
				if matches(impureImports, imp.path) && !((p.dir == "exact" || p.dir == "exact8") && matches(kernelImports, imp.path)) {
					faults = append(faults, t.fault(imp.pos, "pure package %q imports %q: take what it gives as an argument", p.dir, imp.path))
				}
			}
			clock := localName(f, "time")
			ast.Inspect(f.ast, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					if p.dir != "exact" {
						faults = append(faults, t.fault(n.Pos(), "pure package %q starts a goroutine: return an action instead", p.dir))
					}
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && clock != "" && x.Name == clock && slices.Contains(clockNames, n.Sel.Name) {
						faults = append(faults, t.fault(n.Pos(), "pure package %q uses time.%s: take the time as an argument", p.dir, n.Sel.Name))
					}
				}
				return true
			})
			if clock == "." {
				faults = append(faults, t.fault(f.ast.Package, "pure package %q imports all names of time into its own", p.dir))
			}
		}
	}
	return faults
}

// matches reports whether an import path is in the list.
func matches(list []string, path string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		return path == entry || strings.HasSuffix(entry, "/") && strings.HasPrefix(path, entry)
	})
}

// localName returns the name under which a file uses the package of an import path, "" if it does not import it.
func localName(f *sourceFile, importPath string) string {
	for _, s := range f.ast.Imports {
		if s.Path.Value == `"`+importPath+`"` {
			if s.Name != nil {
				return s.Name.Name
			}
			return path.Base(importPath)
		}
	}
	return ""
}

// chanceFaults returns the code that draws from math/rand. What must be equal everywhere comes from package prng and a
// seed, what nobody may guess from crypto/rand; nothing else is needed, and a whole simulation is replayed by its seed.
func chanceFaults(t *tree) []string {
	var faults []string
	for _, p := range t.packages {
		for _, f := range p.code() {
			for _, imp := range f.imports() {
				if matches([]string{"math/rand", "math/rand/"}, imp.path) {
					faults = append(faults, t.fault(imp.pos, "package %q imports %q: use package prng, or crypto/rand for secrets", p.dir, imp.path))
				}
			}
		}
	}
	return faults
}

func TestTidyRulesCatchViolations(t *testing.T) {
	long := func(statements int) string { return strings.Repeat("\tprintln()\n", statements) }
	const doc = "// Package x is tidy.\n"
	for _, c := range []struct {
		name   string
		faults func(*tree) []string
		path   string
		text   string
		want   string
	}{
		{"comment", commentFaults, "x/x.go", doc + "package x\n", ""},
		{"no comment", commentFaults, "x/x.go", "package x\n", "has its comment in 0 files"},
		{"comment of another", commentFaults, "x/x.go", "// Package xy is.\npackage x\n", `begins "Package xy is.", not "Package x "`},
		{"detached comment", commentFaults, "x/x.go", doc + "\npackage x\n", "has its comment in 0 files"},
		{"command", commentFaults, "x/x.go", "// Command x does.\npackage main\n", ""},
		{"entrain", commentFaults, "x/x.go", "// Entrain trains.\npackage main\n", ""},
		{"package main", commentFaults, "x/x.go", "// Package main does.\npackage main\n", `not "Command "`},
		{"tests only", commentFaults, "x/x_test.go", "package x\n", ""},
		{"longest function", sizeFaults, "x/x.go", "package x\n\nfunc f() {\n" + long(functionLinesMax-2) + "}\n", ""},
		{"long function", sizeFaults, "x/x.go", "package x\n\nfunc f() {\n" + long(functionLinesMax-1) + "}\n", "function x.f has 71 lines"},
		{"long method", sizeFaults, "x/x.go", "package x\n\nfunc (t *T[P]) f() {\n" + long(functionLinesMax-1) + "}\n", "function x.T.f has 71 lines"},
		{"long test", sizeFaults, "x/x_test.go", "package x\n\nfunc f() {\n" + long(functionLinesMax) + "}\n", ""},
		{"generated", sizeFaults, "x/x_gen.go", "package x\n\nfunc f() {\n" + long(functionLinesMax) + "}\n", ""},
		{"generated by its comment", sizeFaults, "x/x.go", "// Code generated by gen. DO NOT EDIT.\n\npackage x\n\nfunc f() {\n" + long(functionLinesMax) + "}\n", ""},
		{"longest file", sizeFaults, "x/x.go", "package x\n" + strings.Repeat("\n", fileLinesMax-1), ""},
		{"long file", sizeFaults, "x/x.go", "package x\n" + strings.Repeat("\n", fileLinesMax), "the file has 501 lines"},
		{"formatted", formatFaults, "x/x.go", "package x\n\nvar a = 1\n", ""},
		{"not formatted", formatFaults, "x/x_test.go", "package x\nvar  a=1\n", "not as gofmt writes it"},
		{"files", pureFaults, "llama/x.go", "package x\n\nimport _ \"os\"\n", `pure package "llama" imports "os"`},
		{"sockets", pureFaults, "client/x.go", "package x\n\nimport _ \"net/http\"\n", `pure package "client" imports "net/http"`},
		{"ioutil", pureFaults, "codec/x.go", "package x\n\nimport _ \"io/ioutil\"\n", `imports "io/ioutil"`},
		{"secrets", pureFaults, "key/x.go", "package x\n\nimport _ \"crypto/rand\"\n", `imports "crypto/rand"`},
		{"locks", pureFaults, "codec/distro/x.go", "package x\n\nimport _ \"sync/atomic\"\n", `imports "sync/atomic"`},
		{"workers", pureFaults, "exact/x.go", "package x\n\nimport (\n\t_ \"runtime\"\n\t_ \"sync\"\n)\n\nfunc f() { go f() }\n", ""},
		{"files in exact", pureFaults, "exact/x.go", "package x\n\nimport _ \"os\"\n", `imports "os"`},
		{"readers", pureFaults, "checkpoint/x.go", "package x\n\nimport (\n\t_ \"io\"\n\t_ \"io/fs\"\n)\n", ""},
		{"impure package", pureFaults, "node/x.go", "package x\n\nimport \"time\"\n\nfunc f() { go time.Now() }\n", ""},
		{"test", pureFaults, "client/x_test.go", "package x\n\nimport _ \"os\"\n", ""},
		{"duration", pureFaults, "client/x.go", "package x\n\nimport \"time\"\n\nconst a = time.Second\n", ""},
		{"clock", pureFaults, "client/x.go", "package x\n\nimport \"time\"\n\nfunc f() { time.Now() }\n", `pure package "client" uses time.Now`},
		{"renamed clock", pureFaults, "client/x.go", "package x\n\nimport t \"time\"\n\nvar a = t.Since\n", "uses time.Since"},
		{"clock without its name", pureFaults, "client/x.go", "package x\n\nimport . \"time\"\n\nvar a = Now\n", "imports all names of time"},
		{"another Now", pureFaults, "client/x.go", "package x\n\nvar a = env.Now()\n", ""},
		{"goroutine", pureFaults, "client/x.go", "package x\n\nfunc f() { go f() }\n", "starts a goroutine"},
		{"chance", chanceFaults, "node/x.go", "package x\n\nimport _ \"math/rand/v2\"\n", `package "node" imports "math/rand/v2"`},
		{"old chance", chanceFaults, "llama/x.go", "package x\n\nimport _ \"math/rand\"\n", `imports "math/rand"`},
		{"chance in a test", chanceFaults, "llama/x_test.go", "package x\n\nimport _ \"math/rand\"\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			parsed, _ := sample(t, c.path, c.text)
			expectFault(t, c.faults(parsed), c.want)
		})
	}
}

func TestPackageCommentStandsInOneFile(t *testing.T) {
	const text = "// Package x is.\npackage x\n"
	parsed, _ := sample(t, "x/a.go", text, "x/b.go", text)
	expectFault(t, commentFaults(parsed), "has its comment in 2 files")
}

func TestPackageIsTooLongByItsFilesTogether(t *testing.T) {
	var files []string
	for i := range packageLinesMax / fileLinesMax {
		files = append(files, fmt.Sprintf("x/x%d.go", i), "package x\n"+strings.Repeat("\n", fileLinesMax-1))
	}
	files = append(files, "x/x_gen.go", "package x\n", "x/x_test.go", "package x\n")
	parsed, _ := sample(t, files...)
	expectFault(t, sizeFaults(parsed), "")
	parsed, _ = sample(t, append(files, "x/one.go", "package x\n")...)
	expectFault(t, sizeFaults(parsed), "package x has 5001 lines")
}

// A function in longFunctions that is gone, or has become short, is taken off the list.
func TestLongFunctionsAreLong(t *testing.T) {
	parsed, err := parsedTree()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]token.Pos)
	for _, p := range parsed.packages {
		for _, f := range p.code() {
			for _, d := range f.ast.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok {
					if lines := parsed.fset.Position(fn.End()).Line - parsed.fset.Position(fn.Pos()).Line + 1; lines > functionLinesMax {
						found[functionName(p, fn)] = fn.Pos()
					}
				}
			}
		}
	}
	for name, reason := range longFunctions {
		if _, ok := found[name]; !ok || reason == "" {
			t.Errorf("longFunctions lists %q (reason %q), which is not a function of more than %d lines", name, reason, functionLinesMax)
		}
	}
}

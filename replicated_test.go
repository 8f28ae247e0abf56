package entrain_test

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/token"
	"go/types"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Replicated packages keep to a subset of Go that gives the same result on every machine and that also compiles for Solana's
// virtual machine, whose compiler knows no floats and no signed division, and whose programs have no writable memory
// outside of a call. The rules need types, so these packages are type-checked, which takes a few seconds.

// replicatedImports are what a replicated package may import from outside the module: what a trial compiled for Solana used.
var replicatedImports = []string{"encoding/binary", "math/bits", "slices", "cmp"}

// replicatedExceptions are imports of single packages, kept in a file of their own that a build for a chain's virtual machine
// leaves out.
var replicatedExceptions = map[string][]string{
	"wire/sha256.go": {"crypto/sha256"},
	"key/private.go": {"crypto/ed25519"},
	"key/verify.go":  {"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"},
}

func TestReplicatedPackagesKeepToTheSubset(t *testing.T) {
	parsed, err := parsedTree()
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range replicatedFaults(parsed) {
		t.Error(fault)
	}
}

// replicatedFaults returns where the code of replicated packages leaves the subset.
func replicatedFaults(t *tree) []string {
	c := checker{tree: t, done: make(map[string]*types.Package), std: standardLibrary()}
	for _, p := range t.packages {
		if p.dir == "." || !within(p.dir, lastReplicated) {
			continue
		}
		for _, f := range replicatedCode(p) {
			c.imports(p, f)
		}
		if _, err := c.Import(module + "/" + p.dir); err != nil {
			c.faults = append(c.faults, fmt.Sprintf("%s: %v", p.dir, err))
		}
	}
	slices.Sort(c.faults)
	return slices.Compact(c.faults)
}

// replicatedCode returns the files that replicas run: without those of the programs that count what messages cost, and without
// those that stand in for others where Solana's virtual machine has instructions of its own, which need unsafe.
func replicatedCode(p *sourcePackage) []*sourceFile {
	return slices.DeleteFunc(p.code(), func(f *sourceFile) bool {
		first, _, _ := strings.Cut(string(f.text), "\n")
		return first == "//go:build counted" || first == "//go:build sbf"
	})
}

// standardLibrary returns an importer of the standard library's sources, whose packages are checked once for all tests. A test
// that is built with -trimpath does not know where they are, and asks the go command.
var standardLibrary = sync.OnceValue(func() types.Importer {
	if build.Default.GOROOT == "" {
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			panic(fmt.Sprintf("go env GOROOT: %v", err))
		}
		build.Default.GOROOT = strings.TrimSpace(string(root))
	}
	return importer.ForCompiler(token.NewFileSet(), "source", nil)
})

// checker type-checks replicated packages and collects their faults. It is the importer of the packages among themselves.
type checker struct {
	tree   *tree
	done   map[string]*types.Package // by import path
	std    types.Importer            // of what is outside the module
	faults []string
}

func (c *checker) report(pos token.Pos, dir, format string, args ...any) {
	c.faults = append(c.faults, c.tree.fault(pos, "replicated package %q "+format, append([]any{dir}, args...)...))
}

// imports reports imports outside of the subset.
func (c *checker) imports(p *sourcePackage, f *sourceFile) {
	for _, imp := range f.imports() {
		dir, ours := strings.CutPrefix(imp.path, module+"/")
		switch {
		case ours && within(dir, lastReplicated):
		case slices.Contains(replicatedImports, imp.path):
		case slices.Contains(replicatedExceptions[f.path], imp.path):
		default:
			c.report(imp.pos, p.dir, "imports %q, which is not in the subset (replicated_test.go)", imp.path)
		}
	}
}

// Import implements types.Importer.
func (c *checker) Import(path string) (*types.Package, error) {
	if pkg := c.done[path]; pkg != nil {
		return pkg, nil
	}
	dir, ours := strings.CutPrefix(path, module+"/")
	if !ours {
		return c.std.Import(path)
	}
	for _, p := range c.tree.packages {
		if p.dir == dir {
			pkg, err := c.check(path, p)
			c.done[path] = pkg
			return pkg, err
		}
	}
	return nil, fmt.Errorf("package %q is not in the tree", path)
}

// check type-checks one package and inspects its code.
func (c *checker) check(path string, p *sourcePackage) (*types.Package, error) {
	var files []*ast.File
	for _, f := range replicatedCode(p) {
		files = append(files, f.ast)
	}
	info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue)}
	pkg, err := (&types.Config{Importer: c}).Check(path, c.tree.fset, files, info)
	if err != nil {
		return nil, err
	}
	for _, f := range replicatedCode(p) {
		c.declarations(p, f)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			c.statement(p, n, info)
			if e, ok := n.(ast.Expr); ok {
				c.expression(p, e, info)
			}
			return true
		})
	}
	return pkg, nil
}

// declarations reports package variables. A blank variable holds nothing: it asserts that a type satisfies an interface.
func (c *checker) declarations(p *sourcePackage, f *sourceFile) {
	for _, d := range f.ast.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if name.Name != "_" {
					c.report(name.Pos(), p.dir, "has the package variable %s: pass it as an argument", name.Name)
				}
			}
		}
	}
}

// statement reports concurrency and signed division by assignment.
func (c *checker) statement(p *sourcePackage, n ast.Node, info *types.Info) {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.report(n.Pos(), p.dir, "starts a goroutine")
	case *ast.SelectStmt:
		c.report(n.Pos(), p.dir, "uses select")
	case *ast.AssignStmt:
		if (n.Tok == token.QUO_ASSIGN || n.Tok == token.REM_ASSIGN) && isSigned(info.Types[n.Lhs[0]].Type) {
			c.report(n.Pos(), p.dir, "divides the signed %s: convert it to unsigned", info.Types[n.Lhs[0]].Type)
		}
	}
}

// expression reports types outside of the subset, and signed division. Every expression of such a type is reported, so one
// breach may show in several places.
func (c *checker) expression(p *sourcePackage, e ast.Expr, info *types.Info) {
	tv, ok := info.Types[e]
	if !ok || tv.Type == nil {
		return
	}
	if b, ok := e.(*ast.BinaryExpr); ok && (b.Op == token.QUO || b.Op == token.REM) && tv.Value == nil && isSigned(tv.Type) {
		c.report(b.OpPos, p.dir, "divides the signed %s: convert it to unsigned", tv.Type)
	}
	switch under := tv.Type.Underlying().(type) {
	case *types.Map:
		c.report(e.Pos(), p.dir, "uses the map type %s: use a sorted slice", tv.Type)
	case *types.Chan:
		c.report(e.Pos(), p.dir, "uses the channel type %s", tv.Type)
	case *types.Basic:
		if under.Info()&(types.IsFloat|types.IsComplex) != 0 {
			c.report(e.Pos(), p.dir, "uses the type %s: use integers and stated rounding", tv.Type)
		}
	}
}

// isSigned reports whether values of a type may be signed integers. A type parameter is judged by all types it may stand for.
func isSigned(t types.Type) bool {
	if param, ok := t.(*types.TypeParam); ok {
		constraint, ok := param.Constraint().Underlying().(*types.Interface)
		if !ok || constraint.NumEmbeddeds() == 0 {
			return true
		}
		for embedded := range constraint.EmbeddedTypes() {
			union, ok := embedded.(*types.Union)
			if !ok {
				return isSigned(embedded)
			}
			for term := range union.Terms() {
				if isSigned(term.Type()) {
					return true
				}
			}
		}
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return !ok || basic.Info()&types.IsInteger != 0 && basic.Info()&types.IsUnsigned == 0
}

func TestReplicatedRulesCatchViolations(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
	}{
		{"clean", "import \"math/bits\"\n\ntype T struct{ a [4]uint32 }\n\nconst half = 8 / 2\n\nfunc (t T) f(n uint64, i int) int { return i>>1 + half + bits.Len64(n/3%5) }\n", ""},
		{"assertion of an interface", "type T uint8\n\nvar _ interface{ f() } = T(0)\n\nfunc (T) f() {}\n", ""},
		{"package variable", "var count uint32\n", "has the package variable count"},
		{"package variables in a block", "var (\n\t_ = 1\n\terr error\n)\n", "has the package variable err"},
		{"map", "func f() { var m map[uint32]uint32; _ = len(m) }\n", "uses the map type map[uint32]uint32"},
		{"map behind a name", "type set map[string]bool\n\nfunc f(s struct{ set }) {}\n", "uses the map type"},
		{"float", "func f(n uint32) bool { return float32(n) > 1 }\n", "uses the type float32"},
		{"float constant", "const ratio = 1.5\n", "uses the type untyped float"},
		{"complex", "func f(c complex128) {}\n", "uses the type complex128"},
		{"division of ints", "func f(n int) int { return n / 2 }\n", "divides the signed int"},
		{"division of lengths", "func f(b []byte) int { return len(b) / 2 }\n", "divides the signed int"},
		{"modulo of a signed named type", "type t int64\n\nfunc f(n t) t { return n % 3 }\n", "divides the signed fixture/wire.t"},
		{"division by assignment", "func f(n int32) { n /= 2 }\n", "divides the signed int32"},
		{"modulo by assignment", "func f(n []int) { n[0] %= 2 }\n", "divides the signed int"},
		{"result of another package", "import \"math/bits\"\n\nfunc f(n uint32) int { return bits.Len32(n) / 2 }\n", "divides the signed int"},
		{"unsigned type parameter", "func f[N uint32 | ~uint64](n N) N { return n / 2 }\n", ""},
		{"signed type parameter", "func f[N uint32 | int32](n N) N { return n / 2 }\n", "divides the signed N"},
		{"any integer type parameter", "type integer interface{ ~int | ~uint }\n\nfunc f[N integer](n N) N { return n % 2 }\n", "divides the signed N"},
		{"goroutine", "func f() { go f() }\n", "starts a goroutine"},
		{"channel", "func f(c chan int) {}\n", "uses the channel type chan int"},
		{"select", "func f() { select {} }\n", "uses select"},
		{"fmt", "import _ \"fmt\"\n", `imports "fmt", which is not in the subset`},
		{"reflect", "import _ \"reflect\"\n", `imports "reflect"`},
		{"errors", "import _ \"errors\"\n", `imports "errors"`},
		{"time", "import _ \"time\"\n", `imports "time"`},
		{"os", "import _ \"os\"\n", `imports "os"`},
		{"net", "import _ \"net\"\n", `imports "net"`},
		{"math/rand", "import _ \"math/rand\"\n", `imports "math/rand"`},
		{"hash outside of its file", "import _ \"crypto/sha256\"\n", `imports "crypto/sha256"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			parsed, _ := sample(t, "wire/x.go", "package wire\n\n"+c.text)
			faults := replicatedFaults(parsed)
			for i := range faults { // the module's long path says nothing here
				faults[i] = strings.ReplaceAll(faults[i], module, "fixture")
			}
			if c.want == "" || len(faults) == 0 {
				expectFault(t, faults, c.want)
				return
			}
			for _, fault := range faults { // one breach may show in several expressions
				expectFault(t, []string{fault}, c.want)
			}
		})
	}
}

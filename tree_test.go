package entrain_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// module is the import path of this directory.
const module = "github.com/entrain-network/entrain"

// tree is the source of all packages below a directory, parsed but not type-checked. Files for every platform and build
// tag are in it.
type tree struct {
	fset     *token.FileSet
	packages []*sourcePackage // sorted by dir
}

// sourcePackage is the Go files of one directory, its external test package included.
type sourcePackage struct {
	dir   string // path below the root, "." for the root itself
	files []*sourceFile
}

type sourceFile struct {
	path string // below the root
	text []byte
	ast  *ast.File
}

func (f *sourceFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// isGenerated reports whether a program wrote the file: by its name, or by the comment "Code generated ... DO NOT EDIT.".
func (f *sourceFile) isGenerated() bool {
	return strings.HasSuffix(f.path, "_gen.go") || ast.IsGenerated(f.ast)
}

// imports returns the paths the file imports, with where it does.
func (f *sourceFile) imports() []importSpec {
	var specs []importSpec
	for _, s := range f.ast.Imports {
		p, err := strconv.Unquote(s.Path.Value)
		if err != nil {
			panic("tree: the parser accepted import " + s.Path.Value)
		}
		specs = append(specs, importSpec{path: p, pos: s.Pos()})
	}
	return specs
}

type importSpec struct {
	path string
	pos  token.Pos
}

// code returns the files that are no tests.
func (p *sourcePackage) code() []*sourceFile {
	var files []*sourceFile
	for _, f := range p.files {
		if !f.isTest() {
			files = append(files, f)
		}
	}
	return files
}

// fault describes a breach of a rule at a place in the tree.
func (t *tree) fault(pos token.Pos, format string, args ...any) string {
	return t.fset.Position(pos).String() + ": " + fmt.Sprintf(format, args...)
}

// parsedTree is the tree of the module, parsed once for all tests.
var parsedTree = sync.OnceValues(func() (*tree, error) { return parseTree(os.DirFS(".")) })

// parseTree reads and parses all Go files below the root of fsys. As the go command does, it leaves out testdata, other
// modules, and directories whose names begin with a dot or an underscore.
func parseTree(fsys fs.FS) (*tree, error) {
	t := &tree{fset: token.NewFileSet()}
	byDir := make(map[string]*sourcePackage)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			base := path.Base(name)
			_, modErr := fs.Stat(fsys, path.Join(name, "go.mod"))
			if name != "." && (base == "testdata" || base[0] == '.' || base[0] == '_' || modErr == nil) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(t.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if byDir[dir] == nil {
			byDir[dir] = &sourcePackage{dir: dir}
			t.packages = append(t.packages, byDir[dir])
		}
		byDir[dir].files = append(byDir[dir].files, &sourceFile{path: name, text: text, ast: parsed})
		return nil
	})
	return t, err
}

// sample returns a tree of the files given as path, content, path, content, ... for tests of the rules.
func sample(t *testing.T, pathsAndContents ...string) (*tree, fs.FS) {
	t.Helper()
	fsys := fstest.MapFS{}
	for i := 0; i < len(pathsAndContents); i += 2 {
		fsys[pathsAndContents[i]] = &fstest.MapFile{Data: []byte(pathsAndContents[i+1])}
	}
	parsed, err := parseTree(fsys)
	if err != nil {
		t.Fatalf("sample does not parse: %v", err)
	}
	return parsed, fsys
}

// expectFault fails the test unless exactly one fault was found and contains want, or none was when want is empty.
func expectFault(t *testing.T, faults []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(faults) > 0:
		t.Errorf("faults found where there are none:\n%s", strings.Join(faults, "\n"))
	case want != "" && (len(faults) != 1 || !strings.Contains(faults[0], want)):
		t.Errorf("got faults %q\nwant one that contains %q", faults, want)
	}
}

func TestParseTreeLeavesOutWhatIsNotOfTheModule(t *testing.T) {
	const src = "package x\n"
	parsed, _ := sample(t, "a/x.go", src, "a/testdata/x.go", src, ".git/x.go", src, "_old/x.go", src,
		"other/go.mod", "module other\n", "other/x.go", src, "a/note.txt", "no Go", "b/c/x_test.go", src)
	var dirs []string
	for _, p := range parsed.packages {
		dirs = append(dirs, p.dir)
	}
	if got, want := strings.Join(dirs, " "), "a b/c"; got != want {
		t.Errorf("packages are %q, want %q", got, want)
	}
}

package entrain_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// commentColumnsMax is the width of a comment, indentation included.
const commentColumnsMax = 100

// clumsy are phrases that a native writer would not use, with better ones. They apply to comments
// and to the texts that users read.
var clumsy = []struct {
	phrase *regexp.Regexp
	better string
}{
	{regexp.MustCompile(`(?i)\b(tells|says) whether\b`), "reports whether"},
	{regexp.MustCompile(`(?:^|[.:;!?] )Who [^.?!]*(?:[.!]|$)`), `a noun: "a member that ..."`},
	{regexp.MustCompile(`(?i)\b(whoever|whomever)\b`), `a noun: "any member that ..."`},
	{regexp.MustCompile(`(?i)\banew\b`), "again"},
	{regexp.MustCompile(`(?i)\b(gone|goes|went) on with\b`), "continues"},
	{regexp.MustCompile(`(?i)\bso many\b`), "the number itself"},
	{regexp.MustCompile(`(?i)\bfor ever\b`), "forever"},
	{regexp.MustCompile(`(?i)\bbe it\b`), "whether ... or"},
	{regexp.MustCompile(`(?:%\.?[0-9]*[qsdv]|\b(?:[Ii]t|that|which)) is no (?:[a-km-z]|l[^o])`), "is not a"},
}

// englishFaults returns the breaches of the rules of English, by package directory.
func englishFaults(t *tree) map[string][]string {
	faults := make(map[string][]string)
	for _, p := range t.packages {
		for _, f := range p.code() {
			if f.isGenerated() {
				continue
			}
			for _, group := range f.ast.Comments {
				faults[p.dir] = append(faults[p.dir], commentEnglish(t, group)...)
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
					faults[p.dir] = append(faults[p.dir], phraseFaults(t, s.Pos(), strings.Trim(s.Value, "\"`"))...)
				}
				return true
			})
		}
		if len(faults[p.dir]) == 0 {
			delete(faults, p.dir)
		}
	}
	return faults
}

// commentEnglish returns the faults of one comment: lines too wide, and clumsy phrases.
func commentEnglish(t *tree, group *ast.CommentGroup) []string {
	var faults []string
	for _, c := range group.List {
		start := t.fset.Position(c.Pos())
		for i, line := range strings.Split(c.Text, "\n") {
			columns := utf8.RuneCountInString(line)
			if i == 0 {
				columns += start.Column - 1
			}
			exempt := strings.HasPrefix(line, "//go:") || strings.Contains(line, "://")
			if columns > commentColumnsMax && !exempt {
				faults = append(faults, t.fault(c.Pos(), "a comment reaches column %d, at most %d is allowed", columns, commentColumnsMax))
			}
		}
	}
	return append(faults, phraseFaults(t, group.Pos(), group.Text())...)
}

// phraseFaults returns the clumsy phrases of a text.
func phraseFaults(t *tree, pos token.Pos, text string) []string {
	var faults []string
	text = strings.Join(strings.Fields(text), " ")
	for _, c := range clumsy {
		if found := c.phrase.FindString(text); found != "" {
			faults = append(faults, t.fault(pos, "%q: write %s", found, c.better))
		}
	}
	return faults
}

func TestEnglishIsPlain(t *testing.T) {
	parsed, err := parsedTree()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range englishFaults(parsed) {
		for _, fault := range list {
			t.Error(fault)
		}
	}
}

func TestEnglishRulesCatchViolations(t *testing.T) {
	code := func(comment string) string {
		return "package x\n\n" + comment + "\nconst a = 1\n"
	}
	for _, c := range []struct{ name, text, want string }{
		{"plain", code("// a reports whether it is."), ""},
		{"wide", code("// " + strings.Repeat("wide ", 20)), "reaches column 10"},
		{"wide address", code("// https://example.org/" + strings.Repeat("x", 100)), ""},
		{"tells whether", code("// a tells whether it is."), `"tells whether": write reports whether`},
		{"over two lines", code("// a tells\n// whether it is."), `"tells whether"`},
		{"who", code("// It ends. Who is late loses."), "write a noun"},
		{"question", code("// Who is late?"), ""},
		{"relative", code("// the member who is late"), ""},
		{"ever", code("// lasts for ever"), "forever"},
		{"no thing", "package x\n\nconst a = \"%q is no list\"\n", "write is not a"},
		{"no longer", code("// a list that is no longer"), ""},
		{"string", "package x\n\nconst a = `so\nmany`\n", "the number itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parsed, _ := sample(t, "x/x.go", c.text)
			expectFault(t, englishFaults(parsed)["x"], c.want)
		})
	}
	parsed, _ := sample(t, "x/x_test.go", code("// a tells whether it is."))
	if faults := englishFaults(parsed); len(faults) > 0 {
		t.Errorf("a test's comment is judged: %v", faults)
	}
}

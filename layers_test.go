package entrain_test

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// layers is the order of the packages: a package imports only from lines above its own, except that a package below
// another's directory may import that one (ledger/comet imports ledger). A line ending in "..." stands for all packages
// below a directory. Nobody edits this list to make a build pass; it changes when the design does.
//
// Nothing but cmd/lab and other packages of lab imports a package of lab, with the exceptions in labImporters.
//
// Replicated packages are the lines to host, pure packages the lines to client; tidy_test.go says what that asks of
// them.
const layers = `
.
internal/tally
wire
prng bloom merkle bisect
key committee batch
coordinator/internal/record
coordinator/score
coordinator/dispute
coordinator
host/clock host/wide
host chain/solana/units
exact
exact8
tensor canonical tokenizer merkle/parallel data/order
codec/internal/vec
codec/internal/subset
optim
codec codec/codectest codec/distro codec/dense codec/slice codec/sparseloco
codec/all
llama checkpoint checkpoint/gguf score
trace eval
trace/referee
coordinator/change client/holders client/pace client/share client/table client/underway client/docket
client validator
chain/bittensor chain/solana chain/solana/local chain/solana/program loop retry httpserve atomicfile atomicfile/dirlock internal/freeport internal/opticks tokenizer/learn tokenizer/chat chance bucket/sigv4
chain/solana/svm bucket bucket/mem bucket/serve data/source
data key/keyfile checkpoint/depot p2p p2p/mem p2p/lp2p ledger ledger/ledgertest ledger/mem ledger/comet/cometlog ledger/comet/headers ledger/comet/statefile ledger/solana
ledger/comet engine
engine/cpu engine/enginetest spec event
engine/vulkan/vk engine/vulkan/shader
engine/vulkan/gpu
engine/vulkan/kernel
engine/vulkan
verify
onchain
node/blobs
node/statefile node/queue validator/live
node/gossip
node
runlog
view metrics
model
tui
bench report serve
participant/trainer
web
participant founding
audit
lab/adversary lab/disk lab/results
demo lab/economics lab/sim lab/market lab/study
lab/campaign lab/check
lab/costs lab/blocks lab/large lab/money lab/network
cmd/entrain cmd/lab
internal/asm
coordinator/internal/gen exact/internal/gen exact8/internal/gen codec/internal/gen merkle/parallel/internal/gen tests/... tools/...
`

// The last replicated and the last pure line, by a package in it.
const (
	lastReplicated = "host"
	lastPure       = "client"
)

// importers says which packages may import a dependency from outside the standard library, tests included. A dependency
// that is not here is nobody's. Those with one importer are heavy, or are the one place where a decision is made.
var importers = []struct {
	prefix string   // of import paths
	by     []string // packages; "*_test" stands for all tests
	reason string
}{
	{"github.com/cometbft/", []string{"ledger/comet", "ledger/comet/cometlog", "ledger/comet/headers"}, "the BFT engine is one host of the coordinator among several"},
	{"github.com/ebitengine/purego", []string{"engine/vulkan/vk"}, "one package loads libraries of the system"},
	{"github.com/ProtonMail/go-ecvrf/", []string{"chance"}, "one place decides which random values are proven"},
	{"filippo.io/edwards25519", []string{"chance", "chain/solana"}, "points of the verifiable random function; Solana's addresses without keys are none"},
	{"github.com/libp2p/", []string{"p2p/lp2p"}, "libp2p is one implementation of p2p among several"},
	{"github.com/multiformats/", []string{"p2p/lp2p"}, "addresses of libp2p"},
	{"github.com/spf13/", []string{"cmd/entrain", "cmd/lab"}, "only commands parse command lines"},
	{"github.com/oasisprotocol/curve25519-voi/primitives/ed25519", []string{"key"}, "one rule decides whether a signature is valid"},
	{"github.com/oasisprotocol/curve25519-voi/primitives/sr25519", []string{"chain/bittensor"}, "signatures of Bittensor's accounts"},
	{"github.com/cloudflare/circl/", []string{"chain/bittensor"}, "weights that Bittensor's chain opens when drand signs a round"},
	{"golang.org/x/crypto/blake2b", []string{"chain/bittensor"}, "hashes of Bittensor"},
	{"github.com/cespare/xxhash/", []string{"chain/bittensor"}, "places in Bittensor's storage"},
	{"github.com/gorilla/websocket", []string{"ledger/solana"}, "endpoints of Solana tell of changes; libp2p brings it, too"},
	{"github.com/mr-tron/base58", []string{"chain/bittensor", "chain/solana", "chain/solana/svm", "ledger/solana"}, "addresses of other chains"},
	{"github.com/pelletier/go-toml/", []string{"spec"}, "run configurations are read in one place"},
	{"golang.org/x/text/unicode/norm", []string{"tokenizer"}, "the normal form that tokenizers of others ask for"},
	{"golang.org/x/time/rate", []string{"httpserve"}, "a server sends at a rate; libp2p brings it, too"},
	{"golang.org/x/term", []string{"cmd/entrain"}, "only the command talks to a terminal"},
	{"golang.org/x/crypto/ssh", []string{"key/keyfile"}, "key files are those of ssh-keygen"},
	{"golang.org/x/sys/", []string{"exact", "exact8", "cmd/entrain", "atomicfile/dirlock"}, "what the processor can do, signals and locks"},
	{"charm.land/", []string{"tui"}, "one package draws on a terminal"},
	{"github.com/prometheus/", []string{"metrics"}, "one package talks to monitoring systems"},
	{"github.com/parquet-go/", []string{"data/source"}, "one package reads data sets of others"},
	{"github.com/minio/minio-go/", []string{"*_test"}, "a client of others, to test the S3 server with"},
	{"github.com/andybalholm/brotli", []string{"data/source"}, "one package reads data sets of others"},
	{"github.com/klauspost/compress/", []string{"data/source", "ledger/comet"}, "data sets of others, and frames of a run's state, are compressed"},
	{"github.com/chromedp/", []string{"*_test", "tests/browser"}, "tests of pages in a browser"},
	{"github.com/rogpeppe/go-internal/", []string{"*_test"}, "tests of commands as scripts"},
	{"pgregory.net/rapid", []string{"*_test"}, "property tests"},
	{"go.uber.org/goleak", []string{"*_test"}, "tests for leaked goroutines"},
}

// labImporters says which packages outside lab and cmd/lab may import a package of lab.
var labImporters = map[string][]string{
	"lab/adversary": {"demo"}, // one client of a demo may cheat, to show what becomes of it
}

func TestPackagesImportOnlyFromLayersAbove(t *testing.T) {
	parsed, err := parsedTree()
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range layerFaults(parsed) {
		t.Error(fault)
	}
}

func TestDependenciesHaveTheirImporters(t *testing.T) {
	parsed, err := parsedTree()
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range dependencyFaults(parsed) {
		t.Error(fault)
	}
}

// TestArchitectureHasEveryPackage looks for each package in the table of layers, but for generators and what else only its
// neighbours use.
func TestArchitectureHasEveryPackage(t *testing.T) {
	parsed, err := parsedTree()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parsed.packages {
		first, _, _ := strings.Cut(p.dir, "/")
		if first == "." || first == "tests" || first == "tools" || slices.Contains(strings.Split(p.dir, "/"), "internal") {
			continue
		}
		if !strings.Contains(string(page), "`"+p.dir+"`") {
			t.Errorf("the table of layers in ARCHITECTURE.md lacks package %s", p.dir)
		}
	}
}

func TestListedPackagesExist(t *testing.T) {
	parsed, err := parsedTree()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range missing(parsed) {
		t.Errorf("layers_test.go lists package %q, which does not exist", dir)
	}
}

// missing returns the listed packages that are not in the tree.
func missing(t *tree) []string {
	var dirs []string
	for _, entry := range strings.Fields(layers) {
		exists := slices.ContainsFunc(t.packages, func(p *sourcePackage) bool { return p.dir == entry })
		if !exists && !strings.HasSuffix(entry, "...") {
			dirs = append(dirs, entry)
		}
	}
	return dirs
}

func TestMissingPackagesAreNoticed(t *testing.T) {
	var files []string
	for _, entry := range strings.Fields(layers) {
		if entry != "node" && !strings.HasSuffix(entry, "...") {
			files = append(files, path.Join(entry, "x.go"), "package x\n")
		}
	}
	parsed, _ := sample(t, files...)
	if got := missing(parsed); !slices.Equal(got, []string{"node"}) {
		t.Errorf("missing packages are %q, want node alone", got)
	}
}

// lineOf returns the number of the line of layers that dir is in, from 0 at the top.
func lineOf(dir string) (int, bool) {
	for i, line := range strings.Split(strings.TrimSpace(layers), "\n") {
		for _, entry := range strings.Fields(line) {
			below, all := strings.CutSuffix(entry, "...")
			if dir == entry || all && strings.HasPrefix(dir, below) {
				return i, true
			}
		}
	}
	return 0, false
}

// within reports whether dir is in the lines down to that of last.
func within(dir, last string) bool {
	line, ok := lineOf(dir)
	lastLine, lastOK := lineOf(last)
	if !lastOK {
		panic(fmt.Sprintf("layers: %q is in no line", last))
	}
	return ok && line <= lastLine
}

// layerFaults returns the imports that go down or sideways, and the packages that have no layer. Tests may import anything
// in the module.
func layerFaults(t *tree) []string {
	var faults []string
	for _, p := range t.packages {
		own, ok := lineOf(p.dir)
		if !ok {
			faults = append(faults, t.fault(p.files[0].ast.Package,
				"package %q is in no layer: add it to the list in layers_test.go, below all it imports", p.dir))
			continue
		}
		for _, f := range p.code() {
			for _, imp := range f.imports() {
				dir, ours := strings.CutPrefix(imp.path, module+"/")
				line, listed := lineOf(dir)
				if ours && strings.HasPrefix(dir, "lab/") && !ofLab(p.dir) && !slices.Contains(labImporters[dir], p.dir) {
					faults = append(faults, t.fault(imp.pos, "%q imports %q: what is shipped has nothing of lab", p.dir, dir))
				}
				if !ours || !listed || line < own || strings.HasPrefix(p.dir, dir+"/") {
					continue // a package that is not listed is reported once, above
				}
				faults = append(faults, t.fault(imp.pos,
					"%q imports %q, which is not in a layer above it (layers_test.go): turn the dependency round, or move what is needed up",
					p.dir, dir))
			}
		}
	}
	return faults
}

// ofLab reports whether a package is one of lab's.
func ofLab(dir string) bool { return strings.HasPrefix(dir, "lab/") || dir == "cmd/lab" }

// dependencyFaults returns the imports from outside the standard library and the module that are not in importers.
func dependencyFaults(t *tree) []string {
	var faults []string
	for _, p := range t.packages {
		for _, f := range p.files {
			for _, imp := range f.imports() {
				first, _, _ := strings.Cut(imp.path, "/")
				if !strings.Contains(first, ".") || strings.HasPrefix(imp.path, module+"/") {
					continue // the standard library, or ours
				}
				if fault := dependencyFault(p, f, imp.path); fault != "" {
					faults = append(faults, t.fault(imp.pos, "%s", fault))
				}
			}
		}
	}
	return faults
}

func dependencyFault(p *sourcePackage, f *sourceFile, dep string) string {
	for _, d := range importers {
		if !strings.HasPrefix(dep, d.prefix) {
			continue
		}
		if slices.Contains(d.by, p.dir) || f.isTest() && slices.Contains(d.by, "*_test") {
			return ""
		}
		return fmt.Sprintf("%q imports %q, which only %s may (%s)", p.dir, dep, strings.Join(d.by, ", "), d.reason)
	}
	return fmt.Sprintf("%q imports %q, a dependency that layers_test.go does not know: do without, or add it with its importer and the reason",
		p.dir, dep)
}

func TestLayerRulesCatchViolations(t *testing.T) {
	imports := func(paths ...string) string {
		return "package x\n\nimport (\n\t_ \"" + strings.Join(paths, "\"\n\t_ \"") + "\"\n)\n"
	}
	for _, c := range []struct {
		name, path, text, want string
	}{
		{"from above", "merkle/x.go", imports(module + "/wire"), ""},
		{"standard library", "node/x.go", imports("net/http", "os"), ""},
		{"sideways", "merkle/x.go", imports(module + "/bloom"), `"merkle" imports "bloom", which is not in a layer above`},
		{"down", "wire/x.go", imports(module + "/key"), `x.go:4:2: "wire" imports "key", which is not in a layer above`},
		{"down to a command", "node/x.go", imports(module + "/cmd/entrain"), `"node" imports "cmd/entrain"`},
		{"itself", "wire/x.go", imports(module + "/wire"), `"wire" imports "wire"`},
		{"parent", "ledger/comet/x.go", imports(module + "/ledger"), ""},
		{"sibling", "ledger/solana/x.go", imports(module + "/ledger/mem"), `"ledger/solana" imports "ledger/mem"`},
		{"child", "ledger/x.go", imports(module + "/ledger/mem"), `"ledger" imports "ledger/mem"`},
		{"prefix is not a parent", "p2p/mem/x.go", imports(module + "/p2"), ""},
		{"tests are free", "wire/x_test.go", imports(module + "/node"), ""},
		{"lab in lab", "cmd/lab/x.go", imports(module + "/lab/sim"), ""},
		{"lab elsewhere", "cmd/entrain/x.go", imports(module + "/lab/sim"), `"cmd/entrain" imports "lab/sim": what is shipped has nothing of lab`},
		{"lab in the demo", "demo/x.go", imports(module + "/lab/adversary"), ""},
		{"tools are last", "tools/x/x.go", imports(module + "/cmd/entrain"), ""},
		{"tools are nobody's", "node/x.go", imports(module + "/tools/x"), `"node" imports "tools/x"`},
		{"not listed", "misc/x.go", "package x\n", `package "misc" is in no layer`},
		{"not listed below one that is", "node/inner/x.go", "package x\n", `package "node/inner" is in no layer`},
	} {
		t.Run(c.name, func(t *testing.T) {
			parsed, _ := sample(t, c.path, c.text)
			expectFault(t, layerFaults(parsed), c.want)
		})
	}
}

func TestDependencyRulesCatchViolations(t *testing.T) {
	imports := func(path string) string { return "package x\n\nimport _ \"" + path + "\"\n" }
	for _, c := range []struct {
		name, path, text, want string
	}{
		{"comet in its place", "ledger/comet/x.go", imports("github.com/cometbft/cometbft/node"), ""},
		{"comet elsewhere", "ledger/x.go", imports("github.com/cometbft/cometbft/node"), `"ledger" imports "github.com/cometbft/cometbft/node", which only ledger/comet, `},
		{"comet in a test elsewhere", "node/x_test.go", imports("github.com/cometbft/cometbft/abci/types"), "which only ledger/comet, "},
		{"libp2p in its place", "p2p/lp2p/x_test.go", imports("github.com/libp2p/go-libp2p/core/host"), ""},
		{"libp2p elsewhere", "p2p/x.go", imports("github.com/libp2p/go-libp2p-pubsub"), "which only p2p/lp2p may"},
		{"cobra in its place", "cmd/entrain/x.go", imports("github.com/spf13/cobra"), ""},
		{"cobra elsewhere", "node/x.go", imports("github.com/spf13/cobra"), "which only cmd/entrain, cmd/lab may"},
		{"signatures elsewhere", "coordinator/x.go", imports("github.com/oasisprotocol/curve25519-voi/primitives/ed25519"), "which only key may"},
		{"rapid in a test", "batch/x_test.go", imports("pgregory.net/rapid"), ""},
		{"rapid in code", "batch/x.go", imports("pgregory.net/rapid"), "which only *_test may"},
		{"unknown", "node/x.go", imports("example.com/left/pad"), "a dependency that layers_test.go does not know"},
		{"standard library", "node/x.go", imports("net/http"), ""},
		{"ours", "node/x.go", imports(module + "/wire"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			parsed, _ := sample(t, c.path, c.text)
			expectFault(t, dependencyFaults(parsed), c.want)
		})
	}
}

package report

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/metrics"
	"github.com/entrain-network/entrain/runlog"
)

// runCells runs the code of a notebook, and then prints what the test asks about.
const runCells = `
import json, sys
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]))
print(len(loss), round(loss["train/loss"].iloc[-1], 4), round(members["part"].iloc[0], 4), list(metrics["train/results"]))
`

// TestTheNotebookReadsAReport runs examples/read_a_run.ipynb beside a report and a participant's metrics.
func TestTheNotebookReadsAReport(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not here: the notebook is not run")
	}
	if err := exec.Command(python, "-c", "import importlib.util as u; assert u.find_spec('pandas')").Run(); err != nil {
		t.Skip("python3 has no pandas (pip install pandas): the notebook is not run")
	}
	notebook, err := filepath.Abs("../examples/read_a_run.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := Write(dir, sample(), nil, time.Unix(1_900_000_200, 0)); err != nil {
		t.Fatal(err)
	}
	lines, err := metrics.NewJSONLines(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for step := range coordinator.Step(2) {
		if err := lines.Record(runlog.Record{Time: time.Unix(int64(step), 0), Event: event.Applied{Step: step + 1, Results: 3 + int(step)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := lines.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", runCells, notebook)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "MPLBACKEND=Agg")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := "300 0.0183 0.8333 [3, 4]"; !strings.Contains(string(out), want) {
		t.Errorf("the notebook computes other numbers than %s:\n%s", want, out)
	}
}

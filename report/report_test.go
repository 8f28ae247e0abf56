package report

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/view"
)

func sample() view.Run {
	r := view.Run{
		Head: runlog.Head{Name: "opticks", ID: strings.Repeat("1f", 32), Chain: "demo", Steps: 300, Step: 300, Epoch: 3, Round: 306, Phase: "Finished",
			Points: 4800, Params: strings.Repeat("ab", 32), ParamsRound: 306},
		Tokens: 614_400,
		Members: []view.Member{
			{Index: 0, Key: strings.Repeat("0a", 32), Status: "dropped", Points: 800, Share: 1.0 / 6, Results: 100, JoinedMs: 1_900_000_000_000},
			{Index: 1, Key: strings.Repeat("0b", 32) + "<script>", Status: "active", Points: 4000, Earned: 987, Share: 5.0 / 6, Results: 300},
		},
		Rounds: []view.Round{{Number: 306, Epoch: 3, OpenedMs: 1_900_000_100_000, ClosedMs: 1_900_000_100_500, Seed: "5eed"}},
	}
	for step := uint32(1); step <= 300; step++ {
		b := view.Bucket{From: coordinator.Step(step), To: coordinator.Step(step), Tokens: uint64(step) * 2048, Mean: 5.5 / float64(step), Min: 5 / float64(step), Max: 6 / float64(step), Count: 4}
		r.Loss = append(r.Loss, b)
		b.Min, b.Max = b.Mean, b.Mean
		r.Speed = append(r.Speed, b)
		if step%50 == 0 {
			r.HeldOut = append(r.HeldOut, b)
		}
	}
	r.LR = r.Loss[:1] // no line
	r.Tasks = []view.Task{{Name: "piqa/../x", Items: 50, Acc: r.HeldOut, Norm: r.HeldOut}}
	for step := uint32(1); step <= 20; step++ {
		r.Samples = append(r.Samples, view.Sample{Step: coordinator.Step(step), Prompt: "The rays ", Text: "<are> bent"}, view.Sample{Step: coordinator.Step(step), Prompt: "In ", Text: "glass"})
	}
	r.Trust = &view.Trust{TrustHead: runlog.TrustHead{Percent: 5, Drawn: 41, Passed: 40, Disputed: 1, Convicted: 1}, Convictions: []view.Conviction{
		{Number: 1, Round: 17, Key: strings.Repeat("0a", 32), Offence: "wrong <result>", By: 1, ByKey: strings.Repeat("0b", 32), Slashed: 5000, Evidence: strings.Repeat("ee", 32), FirstRound: 3, LastRound: 17, Results: 15}}}
	r.Trust.Disputes = []view.Dispute{{ID: 1, Round: 17, Conviction: 1, EndedMs: 5, Level: "slices", Op: 41, OpName: "gradient <of> layer 1"}}
	r.Payloads = r.Speed
	r.Windows = &view.Windows{WindowsHead: runlog.WindowsHead{ScoreWindows: 2, Given: 1234}, Validators: []view.Validator{{Seat: 1, Key: strings.Repeat("0c", 32), Trust: 77}},
		Period: &view.Period{Number: 6, First: 11, Last: 12, Members: []view.MemberScore{{Member: 1, Key: strings.Repeat("0b", 32), Scored: true, Score: 0.625, Weight: 1, Reward: 987}},
			Validators: []view.SeatScores{{Seat: 1, Key: strings.Repeat("0c", 32), Said: []view.Said{{Member: 1, Score: 0.5}}}}}}
	return r
}

func TestReportIsWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "report")
	for range 2 { // a second one takes the place of the first
		if err := Write(dir, sample(), nil, time.Unix(1_900_000_200, 0)); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	page := string(read("index.html"))
	for _, want := range []string{"<h1>opticks</h1>", "614,400", "300 of 300", `src="loss.svg"`, `src="throughput.svg"`, "83.3 %", "0.018", "17 March 2030", "wrong &lt;result&gt;", "15 results, rounds 3 to 17", "5,000",
		"<b>The rays </b>&lt;are&gt; bent", "After step 1<", "After step 20<", `src="eval-piqa----x.svg"`, "operation 41 (gradient &lt;of&gt; layer 1), tile 0", "77 of 255", "1,234 tokens", "Period 6, windows 11 to 12", "987", "0.62",
		`src="payloads.svg"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"learning-rate", "<script", "http://", "https://"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if strings.Index(page, "0b0b0b") > strings.Index(page, "0a0a0a") {
		t.Error("members are not in the order of tokens earned")
	}
	for _, name := range []string{"loss", "throughput"} {
		svg := xml.NewDecoder(bytes.NewReader(read(name + ".svg")))
		paths := 0
		for {
			token, err := svg.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s.svg: %v", name, err)
			}
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "path" {
				paths++
			}
		}
		if paths < 3 {
			t.Errorf("%s.svg has %d paths", name, paths)
		}
	}
	for name, lines := range map[string]int{"curves.csv": 300 + 300 + 300 + 6 + 1 + 2*6 + 1, "members.csv": 3, "rounds.csv": 2, "convictions.csv": 2,
		"validators.csv": 2, "scores.csv": 3} {
		all, err := csv.NewReader(bytes.NewReader(read(name))).ReadAll()
		if err != nil || len(all) != lines {
			t.Errorf("%s has %d lines, want %d: %v", name, len(all), lines, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 9+4 {
		t.Errorf("%d files, want 13: %v", len(entries), err)
	}
}

func TestReportOfARunThatHasNotBegun(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, view.Run{Head: runlog.Head{Name: "new", Phase: "WaitingForMembers"}}, nil, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil || !strings.Contains(string(b), "There are no curves") {
		t.Errorf("page %q, %v", b, err)
	}
}

// A legend's labels do not meet, in the letters of 20 units that a phone gets either.
func TestLegendsHaveRoomOnPhones(t *testing.T) {
	const letter = 9.6
	legends := 0
	for _, c := range Charts(sample()) {
		marks := regexp.MustCompile(`M(\S+) 40h18`).FindAllSubmatch(paint(c), -1)
		end := 0.0
		for i, m := range marks {
			at, err := strconv.ParseFloat(string(m[1]), 64)
			if err != nil || at < end {
				t.Errorf("%s: label %d begins at %s, the one before ends at %.0f, %v", c.Title, i, m[1], end, err)
			}
			end = at + 24 + letter*float64(len(c.Lines[i].Label))
			legends++
		}
		if end > width {
			t.Errorf("%s: the legend ends at %.0f of %d", c.Title, end, width)
		}
	}
	if legends < 4 {
		t.Errorf("%d labels", legends)
	}
}

func TestFlatCurveIsDrawn(t *testing.T) {
	flat := view.Curve{{To: 1, Tokens: 1, Mean: 4, Min: 4, Max: 4, Count: 1}, {To: 2, Tokens: 2, Mean: 4, Min: 4, Max: 4, Count: 1}}
	for _, zero := range []bool{false, true} {
		for _, bad := range []string{"NaN", "Inf"} {
			if svg := paint(Chart{Title: "Members", Zero: zero, Lines: []Line{{Curve: flat}}}); bytes.Contains(svg, []byte(bad)) {
				t.Errorf("the picture has %s: %s", bad, svg)
			}
		}
	}
}

// An owner, and a model, may write anything; none of it becomes markup or a key of the card's head.
func TestTheModelCardIsHarmless(t *testing.T) {
	s, err := spec.Parse([]byte("name = \"opticks\"\n"), all.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	s.About = &spec.About{Description: "<script>x</script>\n---\n# Big *news* [here](javascript:x)", License: "MIT\ntags: [x]", Links: []string{"https://example.org/a?b=<c>"}}
	text := string(card(sample(), &s, time.Unix(1_900_000_200, 0)))
	for _, want := range []string{
		"license: \"mit\\ntags: [x]\"\n", "# opticks\n", "&lt;script&gt;", "\n\\---\n\\# Big \\*news\\* \\[here\\]\\(javascript:x\\)", "<https://example.org/a?b=%3Cc%3E>",
		"300 of 300, after 614,400 tokens", "2 took part", "| held-out loss, nats a token | 0.0183 | 300 |", "piqa/../x, accuracy on 50 items | 0.0183", "988,544 parameters",
		"    The rays  | <are> bent", "--hash " + strings.Repeat("ab", 32), "41 were computed again by others: 40 passed. Convicted of cheating: 1.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the card lacks %q:\n%s", want, text)
		}
	}
	for _, bad := range []string{"<script>", "\ntags: [x]\n", "](javascript"} {
		if strings.Contains(text, bad) {
			t.Errorf("the card has %q", bad)
		}
	}
	dir := t.TempDir()
	if err := Write(dir, sample(), &s, time.Unix(1_900_000_200, 0)); err != nil {
		t.Fatal(err)
	}
	if page, err := os.ReadFile(filepath.Join(dir, "index.html")); err != nil || !strings.Contains(string(page), "&lt;script&gt;x") || strings.Contains(string(page), "<script") {
		t.Errorf("the page tells something else than the owner: %v", err)
	}
}

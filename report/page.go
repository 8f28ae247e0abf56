package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/view"
)

// pageHead is the page up to its first heading. TITLE stands for the name of the run.
//
//go:embed page.html
var pageHead string

// membersShown bounds the members on the page; members.csv has all of them.
const membersShown = 200

// page is HTML being written. It does without html/template, which makes the linker keep every
// exported method of the program: 13 MB.
type page struct{ bytes.Buffer }

// add writes a format, whose values are escaped. Integers get separators of thousands.
func (p *page) add(format string, values ...any) {
	for i, v := range values {
		switch v := v.(type) {
		case string:
			values[i] = html.EscapeString(v)
		case int:
			values[i] = view.Thousands(uint64(v))
		case uint32:
			values[i] = view.Thousands(uint64(v))
		case coordinator.Round:
			values[i] = view.Thousands(uint64(v))
		case coordinator.Epoch:
			values[i] = view.Thousands(uint64(v))
		case coordinator.Step:
			values[i] = view.Thousands(uint64(v))
		case coordinator.Member:
			values[i] = view.Thousands(uint64(v))
		case uint64:
			values[i] = view.Thousands(v)
		case uint8, float64:
		default:
			panic(fmt.Sprintf("report: a page cannot show a %T", v))
		}
	}
	fmt.Fprintf(p, format, values...)
}

// table begins a table. Columns whose title begins with "#" hold numbers.
func (p *page) table(titles ...string) {
	p.add("<div class=\"scroll\"><table>\n<thead><tr>")
	for _, t := range titles {
		if name, number := strings.CutPrefix(t, "#"); number {
			p.add(`<th scope="col" class="num">%v</th>`, name)
		} else {
			p.add(`<th scope="col">%v</th>`, t)
		}
	}
	p.add("</tr></thead>\n<tbody>\n")
}

func (p *page) endTable() { p.add("</tbody>\n</table></div>\n") }

// row writes a row of a table: numbers are set to the right, keys are cut.
func (p *page) row(cells ...any) {
	p.add("<tr>")
	for _, c := range cells {
		switch c := c.(type) {
		case hex:
			p.add(`<td><code title="%v">%v</code></td>`, string(c), string(c[:min(len(c), 12)]))
		case figure:
			p.add(`<td class="num">%v</td>`, string(c))
		case string:
			p.add("<td>%v</td>", c)
		default:
			p.add(`<td class="num">%v</td>`, c)
		}
	}
	p.add("</tr>\n")
}

// hex is a cell with a key or a hash, and figure one with a number that is written already.
type (
	hex    string
	figure string
)

func percent(v float64) figure { return figure(strconv.FormatFloat(100*v, 'f', 1, 64) + " %") }

// writePage writes index.html.
func writePage(w io.Writer, r view.Run, s *spec.Spec, charts []Chart, now time.Time) error {
	p := &page{}
	p.WriteString(strings.Replace(pageHead, "TITLE", html.EscapeString(r.Name), 1))
	p.summary(r, now)
	if s != nil && s.About != nil {
		p.about(s.About)
	}
	p.curves(r, charts)
	p.agreed(r)
	p.members(r)
	p.trust(r)
	links := []string{"curves.csv", "members.csv", "rounds.csv"}
	if r.Trust != nil {
		links = append(links, "convictions.csv")
	}
	if r.Windows != nil && r.Windows.ScoreWindows > 0 {
		p.scores(*r.Windows)
		links = append(links, "validators.csv")
		if r.Windows.Period != nil {
			links = append(links, "scores.csv")
		}
	}
	p.add("<h2>Data</h2>\n<p>")
	for _, name := range append(links, "run.json", "README.md") {
		if name != links[0] {
			p.add(", ")
		}
		p.add(`<a href="%v">%v</a>`, name, name)
	}
	p.add("</p>\n</main>\n</body>\n</html>\n")
	_, err := p.WriteTo(w)
	return err
}

// summary writes the name of the run and its figures.
func (p *page) summary(r view.Run, now time.Time) {
	p.add("<h1>%v</h1>\n<p class=\"quiet\">A run of entrain", r.Name)
	if r.Chain != "" {
		p.add(" on chain %v", r.Chain)
	}
	p.add(", as of %v</p>\n<dl>\n", now.UTC().Format("2 January 2006, 15:04 MST"))
	p.add("<div><dt>Phase</dt><dd>%v</dd></div>\n", r.Phase)
	p.add("<div><dt>Step</dt><dd>%v of %v</dd></div>\n", r.Step, r.Steps)
	p.add("<div><dt>Epochs</dt><dd>%v</dd></div>\n", r.Epoch)
	p.add("<div><dt>Tokens</dt><dd>%v</dd></div>\n", r.Tokens)
	if v := last(r.Loss); v != 0 {
		p.add("<div><dt>Training loss</dt><dd>%.3f</dd></div>\n", v)
	}
	if v := last(r.HeldOut); v != 0 {
		p.add("<div><dt>Held-out loss</dt><dd>%.3f</dd></div>\n", v)
	}
	p.add("<div><dt>Members</dt><dd>%v</dd></div>\n</dl>\n", len(r.Members))
}

// about writes what the owner tells of the run.
func (p *page) about(a *spec.About) {
	if a.Description != "" {
		p.add("<p>%v</p>\n", a.Description)
	}
	if a.License != "" {
		p.add("<p>License of the model: %v</p>\n", a.License)
	}
	for _, l := range a.Links {
		p.add("<p><a href=\"%v\" rel=\"noopener noreferrer nofollow\">%v</a></p>\n", l, l)
	}
}

// curves writes the charts, and what the model wrote.
func (p *page) curves(r view.Run, charts []Chart) {
	p.add("<h2>Curves</h2>\n")
	for _, c := range charts {
		p.add(`<figure><img src="%v.svg" alt="%v, %v, against tokens" width="672" height="346">`, c.File, c.Title, c.Axis)
		p.add(`<figcaption>%v, %v: <a href="%v.svg">SVG</a>. The band is the range of each stretch of steps.`, c.Title, c.Axis, c.File)
		p.add("</figcaption></figure>\n")
	}
	if len(charts) == 0 {
		p.add("<p class=\"quiet\">There are no curves: losses are not on the chain, which keeps only four rounds. " +
			"Name a participant's state directory with --state to have them.</p>\n")
	}
	list := samples(r)
	if len(list) > 0 {
		p.add("<h2>What the model wrote</h2>\n<p class=\"quiet\">The model continues the same prompts after " +
			"different steps. All samples are in run.json.</p>\n")
	}
	for _, s := range list {
		p.add("<h3>After step %v</h3>\n", s.Step)
		for _, t := range s.Texts {
			p.add("<blockquote><b>%v</b>%v</blockquote>\n", t.Prompt, t.Text)
		}
	}
}

// agreed writes the hashes that the run agreed on.
func (p *page) agreed(r view.Run) {
	p.add("<h2>What was agreed</h2>\n<p>Parameters <code>%v</code>", r.Params)
	if r.ParamsRound > 0 {
		p.add(" at the start of round %v.</p>\n", r.ParamsRound)
	} else {
		p.add(", the initial ones.</p>\n")
	}
	if c := r.Saved; c.Manifest != "" {
		p.add("<p>Checkpoint of epoch %v: manifest <code>%v</code>, reported by <code>%v</code>.</p>\n", c.Epoch, c.Manifest, c.By)
	}
	p.add("<p>Run <code>%v</code>.</p>\n", r.ID)
	if r.Rollbacks > 0 {
		p.add("<p>Epochs that ended without agreement on their last parameters and were rolled back: %v.</p>\n", r.Rollbacks)
	}
}

// members writes the members with the most points.
func (p *page) members(r view.Run) {
	members := r.Ranked()
	p.add("<h2>Members</h2>\n")
	p.table("#Rank", "Key", "Status", "#Points", "#Share", "#Results", "Joined")
	for i, m := range members[:min(len(members), membersShown)] {
		p.row(i+1, hex(m.Key), view.Standing(r.Phase, m.Status), m.Points, percent(m.Share), m.Results, stamp(m.JoinedMs))
	}
	p.endTable()
	if left := len(members) - membersShown; left > 0 {
		p.add("<p class=\"quiet\">And %v more, in members.csv.</p>\n", left)
	}
}

// trust writes the checks and the convictions.
func (p *page) trust(r view.Run) {
	t := r.Trust
	if t == nil {
		return
	}
	p.add("<h2>Trust</h2>\n<p>%v results were checked by recomputing them, and %v passed", t.Drawn, t.Passed)
	if t.Percent > 0 {
		p.add("; about %d %% of each round's results are drawn", t.Percent)
	}
	p.add(". %v disputes, %v convictions.</p>\n", t.Disputed, t.Convicted)
	if len(t.Convictions) == 0 {
		return
	}
	p.table("#No.", "Member", "Offence", "#Round", "Reported by", "#Lost", "In the model", "Found in", "Evidence")
	for _, c := range t.Convictions {
		in := "nothing"
		if c.Results > 0 {
			in = fmt.Sprintf("%s results, rounds %s to %s", view.Thousands(uint64(c.Results)),
				view.Thousands(uint64(c.FirstRound)), view.Thousands(uint64(c.LastRound)))
		}
		p.row(c.Number, hex(c.Key), c.Offence+": "+c.Words, c.Round, hex(c.ByKey), c.Slashed, in, t.Found(c), hex(c.Evidence))
	}
	p.endTable()
}

// scores writes the validators and the last period that they scored.
func (p *page) scores(w view.Windows) {
	p.add("<h2>Scores</h2>\n<p>%v validators; %v tokens paid for scores", len(w.Validators), w.Given)
	if w.Taken > 0 {
		p.add(", %v taken back", w.Taken)
	}
	p.add(".</p>\n")
	if len(w.Validators) > 0 {
		p.table("#Seat", "Validator", "#Stake", "#Trust", "#Earned")
		for _, v := range w.Validators {
			p.row(v.Seat, hex(v.Key), v.Stake, figure(fmt.Sprintf("%d of 255", v.Trust)), v.Earned)
		}
		p.endTable()
	}
	if w.Period == nil {
		return
	}
	p.add("<h3>Period %v, windows %v to %v</h3>\n", w.Period.Number, w.Period.First, w.Period.Last)
	p.table("Member", "#Score", "#Part", "#Reward", "#Taken back", "#Sequences")
	for _, m := range w.Period.Members[:min(len(w.Period.Members), membersShown)] {
		score := figure("")
		if m.Scored {
			score = figure(strconv.FormatFloat(m.Score, 'f', 2, 64))
		}
		p.row(hex(m.Key), score, percent(m.Weight), m.Reward, m.Penalty, m.Sequences)
	}
	p.endTable()
}

// sampled holds the texts that the model wrote after a step.
type sampled struct {
	Step  coordinator.Step
	Texts []view.Sample
}

// stepsShown bounds the steps whose samples are on the page.
const stepsShown = 8

// samples returns the samples of at most stepsShown steps: the first, the last, and others evenly
// between them.
func samples(r view.Run) (list []sampled) {
	var all []sampled
	for _, s := range r.Samples {
		if n := len(all); n == 0 || all[n-1].Step != s.Step {
			all = append(all, sampled{Step: s.Step})
		}
		last := &all[len(all)-1]
		last.Texts = append(last.Texts, s)
	}
	if len(all) <= stepsShown {
		return all
	}
	for i := range stepsShown {
		list = append(list, all[i*(len(all)-1)/(stepsShown-1)])
	}
	return list
}

func last(c view.Curve) float64 {
	v, _ := c.Last()
	return v
}

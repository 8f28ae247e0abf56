package report

import (
	_ "embed"
	"html/template"
	"io"
	"strconv"
	"time"

	"github.com/entrain-network/entrain/view"
)

//go:embed page.html
var pageText string

// membersShown is how many members the page lists; all are in members.csv.
const membersShown = 200

// writePage writes index.html.
func writePage(w io.Writer, r view.Run, charts []Chart, now time.Time) error {
	page, err := template.New("page").Funcs(template.FuncMap{
		"count": func(n any) string {
			switch n := n.(type) {
			case uint64:
				return thousands(n)
			case uint32:
				return thousands(uint64(n))
			case int:
				return thousands(uint64(n))
			}
			panic("report: count of a thing that is no number")
		},
		"short":   short,
		"percent": func(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + " %" },
		"stamp":   stamp,
		"score":   func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) },
		"found":   func(c view.Conviction) string { return found(r, c) },
		"add":     func(a, b int) int { return a + b },
		"key": func(s string) string {
			return s[:min(len(s), 12)]
		},
	}).Parse(pageText)
	if err != nil {
		panic("report: page.html: " + err.Error())
	}
	members := byPoints(r)
	return page.Execute(w, struct {
		Run     view.Run
		Charts  []Chart
		Members []view.Member
		Left    int // members that are not listed
		Made    string
		Loss    float64
		HeldOut float64
		Samples []sampled
	}{r, charts, members[:min(len(members), membersShown)], max(0, len(members)-membersShown), now.UTC().Format("2 January 2006, 15:04 MST"), last(r.Loss), last(r.HeldOut), samples(r)})
}

// found is where in the step a conviction's dispute has ended.
func found(r view.Run, c view.Conviction) string {
	for _, d := range r.Trust.Disputes {
		if d.Conviction != c.Number || d.Level == "" || d.Level == "none" {
			continue
		}
		text := "operation " + thousands(uint64(d.Op))
		if d.OpName != "" {
			text += ", " + d.OpName
		}
		return text
	}
	return ""
}

// sampled is what the model wrote after a step.
type sampled struct {
	Step  uint32
	Texts []view.Sample
}

// stepsShown is of how many steps the page shows samples.
const stepsShown = 8

// samples are those of some steps, evenly among all that there are, the first and the last with them.
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

// thousands is a number with its thousands apart: 12,345.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

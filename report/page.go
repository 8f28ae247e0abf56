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

// membersShown bounds the members on the page; members.csv has all of them.
const membersShown = 200

// writePage writes index.html.
func writePage(w io.Writer, r view.Run, charts []Chart, now time.Time) error {
	page, err := template.New("page").Funcs(template.FuncMap{
		"count": func(n any) string {
			switch n := n.(type) {
			case uint64:
				return view.Thousands(n)
			case uint32:
				return view.Thousands(uint64(n))
			case int:
				return view.Thousands(uint64(n))
			}
			panic("report: count of something that is not a number")
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
		Left    int // members not listed
		Made    string
		Loss    float64
		HeldOut float64
		Samples []sampled
	}{
		r, charts, members[:min(len(members), membersShown)], max(0, len(members)-membersShown),
		now.UTC().Format("2 January 2006, 15:04 MST"), last(r.Loss), last(r.HeldOut), samples(r),
	})
}

// found returns the operation at which a conviction's dispute ended.
func found(r view.Run, c view.Conviction) string {
	for _, d := range r.Trust.Disputes {
		if d.Conviction != c.Number || d.Level == "" || d.Level == "none" {
			continue
		}
		text := "operation " + view.Thousands(uint64(d.Op))
		if d.OpName != "" {
			text += ", " + d.OpName
		}
		return text
	}
	return ""
}

// sampled holds the texts that the model wrote after a step.
type sampled struct {
	Step  uint32
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

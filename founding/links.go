package founding

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/view"
)

// Links are what a member downloads, and how fast its connection has to be for that, in a run that
// has as many members as it can have.
type Links struct {
	Members   uint32     `json:"members"`
	Downloads []Download `json:"downloads"`
}

// Download is what a member downloads within a time.
type Download struct {
	What  string `json:"what"`
	Bytes uint64 `json:"bytes"`
	// Limit is the key of the specification that says within which time.
	Limit  string        `json:"limit"`
	Within time.Duration `json:"within_ns"`
}

// Rate returns the bytes a second that bring it in time.
func (d Download) Rate() uint64 {
	return uint64(float64(d.Bytes) / max(d.Within.Seconds(), 1e-3))
}

// At returns how long it takes at a number of bytes a second.
func (d Download) At(rate uint64) time.Duration {
	return time.Duration(float64(d.Bytes) / float64(rate) * float64(time.Second))
}

func newLinks(s spec.Spec, needs trainer.Sizes, a *Aggregate) Links {
	l := Links{Members: cmp.Or(s.Members.Slots, s.Members.Capacity)}
	add := func(what string, bytes uint64, limit string, within spec.Duration) {
		l.Downloads = append(l.Downloads, Download{what, bytes, limit, time.Duration(within)})
	}
	add("the model", needs.Model, "times.warmup", s.Times.Warmup)
	results := uint64(l.Members-1) * needs.Payload
	switch {
	case a != nil && a.Slices != nil:
		add("results", a.Slices.Received(), "times.round_train", s.Times.RoundTrain)
	case a != nil && a.Followers < a.None && a.Chosen == spec.AggregateFollowers:
		add("an update", needs.Update, "times.round_train", s.Times.RoundTrain)
		add("results, if elected", client.VouchRounds*results, "times.round_train", s.Times.RoundTrain)
	default:
		add("results", results, "times.round_train", s.Times.RoundTrain)
	}
	if s.Trust.VerificationPercent > 0 && !s.Buckets() {
		// The parameters that the share began from are held, unless the member healed since.
		add("the state of a check", needs.Checked, "trust.verify", s.Trust.Verify)
	}
	return l
}

// links are the connections that a table compares: their names and bytes a second.
var links = [...]struct {
	name string
	rate uint64
}{{"100 Mb/s", 100e6 / 8}, {"1 Gb/s", 1e9 / 8}}

// write prints a table, and what late says.
func (l Links) write(out io.Writer) error {
	fmt.Fprintf(out, "What a member downloads in a run of %d members, how fast a link brings it in time, and how long it takes:\n\n", l.Members)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\tbytes\twithin\tneeds")
	for _, link := range links {
		fmt.Fprintf(w, "\tat %s", link.name)
	}
	for _, d := range l.Downloads {
		fmt.Fprintf(w, "\n%s\t%s\t%s\t%s/s", d.What, view.Bytes(d.Bytes), view.Lasts(d.Within), view.Bytes(d.Rate()))
		for _, link := range links {
			took := d.At(link.rate)
			round := time.Second / 10
			if took > time.Minute {
				round = time.Second
			}
			fmt.Fprintf(w, "\t%v", view.Lasts(took.Round(round)))
			if took > d.Within {
				fmt.Fprintf(w, ", late")
			}
		}
	}
	fmt.Fprint(w, "\n")
	if err := w.Flush(); err != nil {
		return err
	}
	if late := l.late(); late != "" {
		fmt.Fprintf(out, "\n%s\n", late)
	}
	return nil
}

// late says which downloads come late even over the fastest link, and what to do; "" if none does.
func (l Links) late() string {
	fast := links[len(links)-1]
	longest := map[string]time.Duration{} // by limit
	var limits, raise []string
	for _, d := range l.Downloads {
		if took := d.At(fast.rate); took > d.Within {
			if longest[d.Limit] == 0 {
				limits = append(limits, d.Limit)
			}
			longest[d.Limit] = max(longest[d.Limit], took)
		}
	}
	for _, limit := range limits {
		raise = append(raise, fmt.Sprintf("%s to %s or more", limit, view.Lasts(longest[limit].Truncate(time.Second)+time.Second)))
	}
	if raise == nil {
		return ""
	}
	return fmt.Sprintf("Members with a link of %s would be late: raise %s.", fast.name, strings.Join(raise, ", and "))
}

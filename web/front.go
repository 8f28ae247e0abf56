package web

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"sort"
	"time"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/view"
)

// runLine is a run on the front page.
type runLine struct {
	runlog.Head
	Known   bool        `json:"known"` // a state was seen
	Speed   float64     `json:"tokens_per_second"`
	Tokens  uint64      `json:"tokens"`
	LeftMs  uint64      `json:"left_ms"` // until it ends, at its speed; 0: unknown
	Preset  string      `json:"preset"`
	Params  int         `json:"params"`
	About   *spec.About `json:"about,omitempty"`
	Join    string      `json:"join"` // the run, where its chain is and what else join needs
	Scored  bool        `json:"scored"`
	Loss    [][2]figure `json:"loss"`     // [step, nats a token]
	HeldOut bool        `json:"held_out"` // Loss is on held-out text
}

// figure is a float as pages get it.
type figure float64

// MarshalJSON writes null for what JSON cannot hold.
func (n figure) MarshalJSON() ([]byte, error) { return appendNumber(nil, float64(n)), nil }

// leader is somebody on the leaderboard of all runs: a member, or the key that the earnings of
// several nodes go to.
type leader struct {
	Key    string   `json:"key"`
	Team   string   `json:"team,omitempty"`
	Member string   `json:"member"` // one of its nodes that has a place in the run In, if any has
	In     string   `json:"in"`
	Tokens uint64   `json:"tokens"` // of its accepted results
	Earned uint64   `json:"earned"` // by validators' scores
	Runs   []string `json:"runs"`
	Nodes  int      `json:"nodes"`
	Active bool     `json:"active"` // takes part in a run now
}

const (
	leadersMax = 50
	sparkMax   = 60 // points of a run's loss on the front page
	frontEvery = time.Second
)

// front is what the front page shows.
type front struct {
	Chain     string    `json:"chain"`
	Reachable bool      `json:"reachable"`
	Runs      []runLine `json:"runs"`
	Leaders   []leader  `json:"leaders"` // the best first
	Teams     []leader  `json:"teams"`   // likewise; Nodes counts the keys, Key and Runs are empty
	Members   int       `json:"members"` // keys that ever took part
	Closed    int       `json:"closed"`  // runs that count, and are no longer on the chain
}

// serveFront answers with the front page's content, which is made once a second for everybody.
func (s *Server) serveFront(w http.ResponseWriter, r *http.Request) {
	s.fronting.Lock()
	defer s.fronting.Unlock()
	if now := time.Now(); now.Sub(s.fronted) >= frontEvery || len(s.front.Runs) == 0 {
		s.front, s.fronted = s.newFront(now), now
	}
	s.front.Reachable = s.answers()
	give(w, s.front)
}

func (s *Server) newFront(now time.Time) front {
	f := front{Chain: s.o.Ledger.ChainID(), Runs: []runLine{}}
	s.mu.Lock()
	called := s.called
	s.mu.Unlock()
	for _, name := range s.runs() {
		f.Runs = append(f.Runs, s.desk(name).line(name, s.o.Endpoints, now))
	}
	s.note(now)
	for _, r := range s.records {
		if !r.open {
			f.Closed++
		}
	}
	f.Leaders = s.leaders()
	for i, l := range f.Leaders {
		f.Leaders[i].Team = called[l.Key].Team
	}
	f.Teams = teams(f.Leaders)
	f.Members = len(f.Leaders)
	f.Leaders, f.Teams = best(f.Leaders), best(f.Teams)
	return f
}

// serveNames answers with what the members and validators of the runs are called.
func (s *Server) serveNames(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	called := s.called
	s.mu.Unlock()
	found := map[string]host.Profile{}
	add := func(key string) {
		if p, ok := called[key]; ok {
			found[key] = p
		}
	}
	for _, name := range s.runs() {
		d := s.desk(name)
		d.mu.Lock()
		for _, m := range d.run.Members {
			add(m.Key)
			add(m.Payee)
		}
		if v := d.run.Windows; v != nil {
			for _, x := range v.Validators {
				add(x.Key)
			}
		}
		d.mu.Unlock()
	}
	give(w, slices.AppendSeq([]host.Profile{}, maps.Values(found)))
}

// teams sums up what the members of each team did.
func teams(all []leader) (list []leader) {
	for _, l := range all {
		if l.Team == "" {
			continue
		}
		i := slices.IndexFunc(list, func(t leader) bool { return t.Team == l.Team })
		if i < 0 {
			i = len(list)
			list = append(list, leader{Team: l.Team})
		}
		t := &list[i]
		t.Nodes++
		t.Tokens += l.Tokens
		t.Earned += l.Earned
		t.Active = t.Active || l.Active
	}
	return list
}

// best returns the first of a leaderboard.
func best(list []leader) []leader {
	sort.Slice(list, func(i, j int) bool {
		a, b := &list[i], &list[j]
		return cmp.Or(cmp.Compare(b.Earned, a.Earned), cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.Key+a.Team, b.Key+b.Team)) < 0
	})
	return append([]leader{}, list[:min(len(list), leadersMax)]...)
}

// line describes the run.
func (d *desk) line(name string, endpoints []string, now time.Time) runLine {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refresh(now)
	l := runLine{
		Head: d.run.Head, Known: d.version > 0, Speed: d.run.TokensPerSecond, Tokens: d.run.Tokens, LeftMs: d.run.LeftMs,
		Join: commandTarget(name, endpoints), Scored: d.run.Windows != nil && d.run.Windows.ScoreWindows > 0, Loss: spark(d.run.HeldOut),
	}
	if l.HeldOut = len(l.Loss) >= 2; !l.HeldOut {
		l.Loss = spark(d.run.Loss)
	}
	l.Name = name
	if d.spec != nil {
		l.Preset, l.About = d.spec.Model.Name(), d.spec.About
		if !data.IsURL(d.spec.Data.Location) {
			l.Join += " --data ./data"
		}
		if m, err := d.spec.Llama(); err == nil {
			l.Params = m.Layout().Len()
		}
	}
	return l
}

// spark returns at most sparkMax points of a curve, the last one among them.
func spark(c view.Curve) [][2]figure {
	points := [][2]figure{}
	stride := len(c)/sparkMax + 1
	for i := (len(c) - 1) % stride; i >= 0 && i < len(c); i += stride {
		points = append(points, [2]figure{figure(c[i].To), figure(c[i].Mean)})
	}
	return points
}

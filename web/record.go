package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
)

// record is what the members of a run did, as far as this server saw. It outlives the run, which
// its owner may close, and the places of members that others got.
type record struct {
	Run     string         `json:"run"`
	ID      string         `json:"id"`
	Members map[string]did `json:"members"` // by key; none that was convicted

	open, changed bool // the chain has the run; it is not written yet
}

// name returns the record's name, by which it is kept.
func (r *record) name() string { return r.Run + "-" + r.ID }

// did is what a member did in a run.
type did struct {
	Payee  string `json:"payee,omitempty"` // the key that its earnings go to, if it is another
	Tokens uint64 `json:"tokens"`          // of its accepted results
	Earned uint64 `json:"earned"`          // by validators' scores

	here, active bool // it has a place in the run now, and takes part
}

const (
	recordsMax     = 4096
	recordBytesMax = 64 << 20
)

// recall reads the records of earlier servers.
func (s *Server) recall() {
	if s.o.Records == "" {
		return
	}
	files, err := os.ReadDir(s.o.Records)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.o.Log.Warn("cannot read what members did in earlier runs", "err", err)
	}
	for _, f := range files[:min(len(files), recordsMax)] {
		r := &record{}
		b, err := atomicfile.ReadBounded(filepath.Join(s.o.Records, f.Name()), recordBytesMax)
		if err == nil {
			err = json.Unmarshal(b, r)
		}
		if err == nil && (r.Members == nil || r.name()+".json" != f.Name()) {
			err = errors.New("it is not a record of a run")
		}
		if err != nil {
			s.o.Log.Warn("cannot read what members did in an earlier run", "file", f.Name(), "err", err)
			continue
		}
		s.records[r.name()] = r
	}
}

// keep brings the records up to date and writes those that changed since they were written.
func (s *Server) keep(now time.Time) {
	s.fronting.Lock()
	defer s.fronting.Unlock()
	s.note(now)
	for name, r := range s.records {
		if !r.changed || s.o.Records == "" {
			continue
		}
		b, err := json.Marshal(r)
		if err == nil {
			err = os.MkdirAll(s.o.Records, 0o755)
		}
		if err == nil {
			err = atomicfile.WriteBytes(filepath.Join(s.o.Records, name+".json"), 0o644, b)
		}
		if err != nil {
			s.o.Log.Warn("cannot keep what the members of a run did", "run", r.Run, "err", err)
			return
		}
		r.changed = false
	}
}

// note brings the records up to date.
func (s *Server) note(now time.Time) {
	for _, r := range s.records {
		r.open = false
	}
	for _, name := range s.runs() {
		s.desk(name).note(name, s.records, now)
	}
}

// note brings the record of the run up to date.
func (d *desk) note(name string, records map[string]*record, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refresh(now)
	if d.run.ID == "" {
		return
	}
	r := records[name+"-"+d.run.ID]
	if r == nil {
		r = &record{Run: name, ID: d.run.ID, Members: map[string]did{}}
		records[r.name()] = r
	}
	r.open = true
	for k, m := range r.Members {
		m.here, m.active = false, false
		r.Members[k] = m
	}
	for _, m := range d.run.Members {
		was, known := r.Members[m.Key]
		is := did{Payee: m.Payee, Tokens: m.Points * uint64(d.run.SeqTokens), Earned: m.Earned}
		switch {
		case m.Status == "ejected":
			delete(r.Members, m.Key)
			r.changed = r.changed || known
		case is.Tokens > 0 || is.Earned > 0:
			r.changed = r.changed || is != was
			is.here, is.active = true, m.Present() && d.run.Phase != "Finished"
			r.Members[m.Key] = is
		}
	}
}

// leaders returns the leaderboard that the records give.
func (s *Server) leaders() []leader {
	rows := map[string]*leader{}
	for _, name := range slices.Sorted(maps.Keys(s.records)) {
		r := s.records[name]
		for _, k := range slices.Sorted(maps.Keys(r.Members)) {
			m := r.Members[k]
			key := cmp.Or(m.Payee, k)
			row := rows[key]
			if row == nil {
				row = &leader{Key: key}
				rows[key] = row
			}
			row.Nodes++
			row.Tokens += m.Tokens
			row.Earned += m.Earned
			row.Active = row.Active || m.active
			if !slices.Contains(row.Runs, r.Run) {
				row.Runs = append(row.Runs, r.Run)
			}
			if m.here && (row.Member == "" || m.active) {
				row.Member, row.In = k, r.Run
			}
		}
	}
	list := []leader{}
	for _, row := range rows {
		list = append(list, *row)
	}
	return list
}

package web

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/coordinator"
)

// checkpointsMax bounds how many of a participant's checkpoints are listed: it keeps a few.
const checkpointsMax = 100

// checkpointLine is a checkpoint that can be downloaded.
type checkpointLine struct {
	Name     string            `json:"name"`
	Epoch    coordinator.Epoch `json:"epoch"`
	Step     coordinator.Step  `json:"step"`
	Params   string            `json:"params"`
	Manifest string            `json:"manifest"` // its hash
	Bytes    uint64            `json:"bytes"`
	Files    []checkpoint.File `json:"files"`
}

// checkpoints returns the checkpoints in the participant's directory, the newest first. What is no
// checkpoint, such as one that is being written, is left out.
func (n *Node) checkpoints() ([]checkpointLine, error) {
	list := []checkpointLine{}
	if n == nil || n.Checkpoints == "" {
		return list, nil
	}
	entries, err := os.ReadDir(n.Checkpoints)
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") || len(list) >= checkpointsMax {
			continue
		}
		saved, err := checkpoint.OpenLocal(os.DirFS(filepath.Join(n.Checkpoints, e.Name())))
		if err != nil {
			continue
		}
		m := saved.Manifest
		line := checkpointLine{Name: e.Name(), Epoch: coordinator.Epoch(m.Epoch), Step: coordinator.Step(m.Step), Params: m.Params.String(), Manifest: m.Hash().String(), Files: m.Files}
		for _, f := range m.Files {
			line.Bytes += f.Bytes
		}
		list = append(list, line)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Step > list[j].Step })
	return list, nil
}

// node returns the participant whose run it is, or nil.
func (s *Server) node(run string) *Node {
	if n := s.o.Node; n != nil && n.Run == run {
		return n
	}
	return nil
}

func (s *Server) serveCheckpoints(w http.ResponseWriter, r *http.Request, _ *desk) {
	list, err := s.node(r.PathValue("run")).checkpoints()
	if err != nil {
		s.o.Log.Warn("cannot read the participant's checkpoints", "err", err)
		fail(w, http.StatusInternalServerError, "the participant's checkpoints cannot be read: "+err.Error())
		return
	}
	give(w, struct {
		Checkpoints []checkpointLine `json:"checkpoints"`
	}{list})
}

// serveCheckpointFile sends a file that a checkpoint's manifest names, or the manifest.
func (s *Server) serveCheckpointFile(w http.ResponseWriter, r *http.Request, _ *desk) {
	list, err := s.node(r.PathValue("run")).checkpoints()
	at := slices.IndexFunc(list, func(c checkpointLine) bool { return c.Name == r.PathValue("name") })
	file := r.PathValue("file")
	if err != nil || at < 0 || file != checkpoint.ManifestFile && !slices.ContainsFunc(list[at].Files, func(f checkpoint.File) bool { return f.File == file }) {
		fail(w, http.StatusNotFound, "no such file; the list of checkpoints may have changed")
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+file+`"`)
	http.ServeFileFS(w, r, os.DirFS(filepath.Join(s.o.Node.Checkpoints, list[at].Name)), file)
}

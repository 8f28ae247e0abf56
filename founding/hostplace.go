package founding

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/host"
)

// smallSpec is the specification of a hosted run whose owner wrote none. Two laptops train its
// million parameters in minutes.
const smallSpec = `name = %q
steps = 1000

[batch]
start = 32

[times]
waiting = "2s"
round_train = "30s"
epoch = "2m"
`

// runName derives a run's name from a file's: "Isaac.Newton-Opticks.txt" becomes
// "isaac-newton-opticks".
func runName(path string) string {
	name := filepath.Base(path)
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(strings.TrimSuffix(name, filepath.Ext(name))))
	name = strings.Trim(name, "-")
	return cmp.Or(strings.Trim(name[:min(len(name), host.RunNameBytesMax)], "-"), "run")
}

// Place fills in the specification and the directory, without making anything. Run does it, too.
func (h *Hosting) Place() (err error) {
	given := h.Data
	if h.Data, err = absolute(h.Data); err != nil {
		return err
	}
	if h.From, err = absolute(h.From); err != nil {
		return err
	}
	switch {
	case h.File != "":
		if h.text, err = atomicfile.ReadBounded(h.File, host.SpecBytesMax); err != nil {
			return fmt.Errorf("specification: %w", err)
		}
	case h.Data != "":
		h.text = fmt.Appendf(nil, smallSpec, runName(h.Data))
	}
	if h.Home == "" {
		switch {
		case h.text == nil:
			return errors.New("say which run: its specification with -f FILE, or only its data with --data FILE, for a small run on it")
		case h.Base == "":
			return errors.New("this system names no directory for data; name one with --home DIR")
		}
		s, err := Draft{Text: h.text, From: h.From}.Read()
		if err != nil {
			return fmt.Errorf("specification: %w", err)
		}
		h.Home = filepath.Join(h.Base, "hosted", s.Name)
	}
	if h.Home, err = filepath.Abs(h.Home); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(h.Home, sourceFile)); given == "" || err == nil {
		return nil // what a run was prepared from may have gone
	}
	var at *fs.PathError
	if _, err := os.Stat(given); errors.As(err, &at) {
		return fmt.Errorf("--data %q: %w", given, at.Err)
	}
	return nil
}

// absolute returns a path as Hosted has it; "" stays.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

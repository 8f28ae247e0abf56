package depot

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/atomicfile/dirlock"
	"github.com/entrain-network/entrain/wire"
)

// partialAge is the time after its last write at which an interrupted fetch is removed.
const partialAge = 24 * time.Hour

// partialsMost bounds the interrupted fetches in a directory.
const partialsMost = 3

const partialPrefix = atomicfile.TempPrefix + "fetch-"

// versionBytesMax bounds a version that is written down.
const versionBytesMax = 256

// partialDir is a directory of files that are being fetched: the files in files/, and for each a
// log of its pieces, by which another process checks what a killed one left.
type partialDir struct {
	root  string
	piece int64
	wrote map[string]bool // the files of this fetch
	keep  bool            // whether there is something to continue
}

// writeDir makes the directory dir with the files that write fetches, or leaves nothing there. What
// a failed fetch of the same address left in Options.Partial is there again.
func (f *fetching) writeDir(ctx context.Context, address, dir string, write func(*partialDir) error) (err error) {
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("write directory %q: %w", dir, fs.ErrExist)
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	d := &partialDir{piece: f.options.piece, wrote: make(map[string]bool)}
	lasting := false
	if within := f.options.Partial; within != "" {
		d.root = filepath.Join(within, partialPrefix+wire.SHA256([]byte(address)).String()[:16])
		removePartials(within, d.root)
		unlock, err := dirlock.Lock(d.root, "interrupted fetch")
		if lasting = err == nil; lasting { // else another process may be fetching the same
			defer unlock()
		}
	}
	if !lasting {
		if d.root, err = os.MkdirTemp(parent, atomicfile.TempPrefix+"*"); err != nil {
			return err
		}
	}
	defer func() {
		if err == nil || !lasting || !d.keep || errors.Is(err, fs.ErrExist) {
			_ = os.RemoveAll(d.root) // RemoveTemps finds what stays
		}
	}()
	if err := os.MkdirAll(d.path(""), 0o755); err != nil {
		return err
	}
	if err := write(d); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.removeOthers(); err != nil {
		return err
	}
	return atomicfile.MoveDir(d.path(""), dir)
}

// removePartials removes interrupted fetches: old ones, and all but the newest beside root. What
// cannot be removed does no harm but to take room.
func removePartials(within, root string) {
	_ = atomicfile.RemoveTemps(within, partialAge)
	list, _ := filepath.Glob(filepath.Join(within, partialPrefix+"*"))
	begun := func(path string) (t time.Time) {
		if info, err := os.Stat(path); err == nil {
			t = info.ModTime()
		}
		return t
	}
	list = slices.DeleteFunc(list, func(path string) bool { return path == root })
	slices.SortFunc(list, func(a, b string) int { return begun(b).Compare(begun(a)) })
	for _, path := range list[min(len(list), partialsMost-1):] {
		if unlock, err := dirlock.Lock(path, "interrupted fetch"); err == nil { // nobody is fetching it
			_ = os.RemoveAll(path)
			unlock()
		}
	}
}

// removeOthers removes files of an earlier fetch that this one has not.
func (d *partialDir) removeOthers() error {
	entries, err := os.ReadDir(d.path(""))
	for _, e := range entries {
		if !d.wrote[e.Name()] {
			err = errors.Join(err, os.RemoveAll(d.path(e.Name())))
		}
	}
	return err
}

func (d *partialDir) path(name string) string { return filepath.Join(d.root, "files", name) }

// save writes a small file.
func (d *partialDir) save(name string, b []byte) error {
	p, err := d.open(name, "", -1)
	if err != nil {
		return err
	}
	return errors.Join(p.add(b), p.close(false))
}

// partial is a file that is being fetched. Its log has the version and the size in the first line,
// then the SHA-256 of each piece. Without a version there is no log.
type partial struct {
	dir       *partialDir
	file, log *os.File
	version   string
	size, at  int64 // bytes of the whole file, -1 if unknown; and those that are there
	total     hash.Hash
}

// open opens a file behind the pieces that are there: of the given version and size, or with "" of
// the one that the log names.
func (d *partialDir) open(name, version string, size int64) (p *partial, err error) {
	if name == "" || name != filepath.Base(name) || !filepath.IsLocal(name) || name == "." {
		return nil, fmt.Errorf("%q is not the name of a plain file", name)
	}
	p = &partial{dir: d, size: -1}
	if p.file, err = os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, err
	}
	if p.log, err = os.OpenFile(filepath.Join(d.root, "log-"+name), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		p.file.Close()
		return nil, err
	}
	d.wrote[name] = true
	if err = p.check(version, size); err != nil {
		p.file.Close()
		p.log.Close()
		return nil, err
	}
	return p, nil
}

// check finds the pieces that the log has and that are on the disk as it has them: a machine that
// lost its power may have written one without the other.
func (p *partial) check(version string, size int64) error {
	p.total = sha256.New()
	lines := bufio.NewReader(io.LimitReader(p.log, 1<<30))
	header, err := lines.ReadString('\n')
	var logged string
	var loggedSize int64
	if err == nil {
		_, err = fmt.Sscanf(header, "%q %d\n", &logged, &loggedSize)
	}
	if err != nil || logged == "" || loggedSize <= 0 || version != "" && (logged != version || loggedSize != size) {
		return p.begin(version, size)
	}
	p.version, p.size = logged, loggedSize
	most := p.size
	if version == "" {
		// The server must still have this version: the last piece is asked for in any case.
		most = (p.size - 1) / p.dir.piece * p.dir.piece
	}
	logEnd := int64(len(header))
	piece := make([]byte, min(p.dir.piece, p.size))
	for p.at < most {
		line, err := lines.ReadString('\n')
		b := piece[:min(p.dir.piece, p.size-p.at)]
		if _, fault := io.ReadFull(p.file, b); err != nil || fault != nil || line != wire.SHA256(b).String()+"\n" {
			break
		}
		p.total.Write(b)
		p.at += int64(len(b))
		logEnd += int64(len(line))
	}
	if p.at == 0 {
		return p.begin(version, size)
	}
	p.dir.keep = true
	if err := errors.Join(p.file.Truncate(p.at), p.log.Truncate(logEnd)); err != nil {
		return err
	}
	_, err = p.file.Seek(p.at, io.SeekStart)
	_, fault := p.log.Seek(logEnd, io.SeekStart)
	return errors.Join(err, fault)
}

// begin empties the file, for the given version and size.
func (p *partial) begin(version string, size int64) error {
	p.version, p.size, p.at, p.total = version, size, 0, sha256.New()
	for _, f := range []*os.File{p.file, p.log} {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := f.Truncate(0); err != nil {
			return err
		}
	}
	if version == "" || size < 0 {
		return nil
	}
	_, err := fmt.Fprintf(p.log, "%q %d\n", version, size)
	return err
}

// add appends the next piece.
func (p *partial) add(b []byte) error {
	if _, err := p.file.Write(b); err != nil {
		return err
	}
	p.total.Write(b)
	p.at += int64(len(b))
	if p.version == "" || p.size < 0 {
		return nil
	}
	p.dir.keep = true
	_, err := fmt.Fprintln(p.log, wire.SHA256(b))
	return err
}

// sum returns the SHA-256 of the bytes that are there, hexadecimal.
func (p *partial) sum() string { return hex.EncodeToString(p.total.Sum(nil)) }

// close closes the file, synced to disk; one that is bad it empties before.
func (p *partial) close(bad bool) (err error) {
	if bad {
		err = p.begin("", -1)
	}
	return errors.Join(err, p.file.Sync(), p.file.Close(), p.log.Close())
}

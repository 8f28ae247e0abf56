package serve

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/entrain-network/entrain/atomicfile"
)

// store is the directory of the objects.
type store struct {
	objects, uploads string
	locks            [64]sync.Mutex // of objects, by the hash of their path
	seed             maphash.Seed
	stamped          atomic.Int64 // the newest time of a file, in nanoseconds
}

// abandonedAge is the age without new parts after which a restart removes an upload.
const abandonedAge = 7 * 24 * time.Hour

// recover brings the directory in order: it removes what interrupted writes left, and takes over
// files that lack the mark of an object, as servers of earlier versions wrote them.
func (s *store) recover() error {
	s.seed = maphash.MakeSeed()
	for _, dir := range []string{s.objects, s.uploads} {
		if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	buckets, err := os.ReadDir(s.objects)
	if err != nil {
		return err
	}
	for _, b := range buckets {
		if err := atomicfile.RemoveTemps(filepath.Join(s.uploads, b.Name()), abandonedAge); err != nil {
			return err
		}
		if err := recoverBucket(filepath.Join(s.objects, b.Name())); err != nil {
			return err
		}
	}
	return nil
}

// earlierUploads is the directory in which earlier versions kept incomplete uploads.
const earlierUploads = ".sgwtmp"

// recoverBucket brings one bucket's directory in order.
func recoverBucket(dir string) error {
	if err := os.RemoveAll(filepath.Join(dir, earlierUploads)); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || e.IsDir() || strings.HasSuffix(path, fileMark):
			return err
		case strings.HasPrefix(e.Name(), atomicfile.TempPrefix):
			return os.Remove(path)
		}
		return os.Rename(path, filepath.Join(filepath.Dir(path), escape(e.Name())+fileMark))
	})
}

// make creates a bucket, unless it exists.
func (s *store) make(bucket string) error {
	return atomicfile.MkdirAll(filepath.Join(s.objects, bucket), 0o700)
}

// has reports whether a bucket exists.
func (s *store) has(bucket string) bool {
	info, err := os.Stat(filepath.Join(s.objects, bucket))
	return err == nil && info.IsDir()
}

// Limits of keys. A part of a key between two slashes is the name of a file.
const (
	keyBytesMax  = 1024
	nameBytesMax = 255
	fileMark     = "%"
)

// escape returns a part of a key as a file's name: a name of letters, digits, "-", "_" and inner
// "." is unchanged. No name it returns ends in "%" except that of the empty part.
func escape(part string) string {
	if part == "" {
		return "%"
	}
	var b strings.Builder
	for i := range len(part) {
		c := part[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// unescape is the inverse of escape. It returns false for names that escape does not return.
func unescape(name string) (string, bool) {
	if name == "%" {
		return "", true
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b.WriteByte(name[i])
			continue
		}
		if i+2 >= len(name) {
			return "", false
		}
		c, err := strconv.ParseUint(name[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), escape(b.String()) == name
}

// path returns the file of an object.
func (s *store) path(bucket, key string) (string, error) {
	if len(key) > keyBytesMax {
		return "", errKeyTooLong
	}
	if !utf8.ValidString(key) || strings.ContainsRune(key, 0) {
		return "", errBadKey
	}
	parts := strings.Split(key, "/")
	for i, part := range parts {
		if parts[i] = escape(part); len(parts[i])+len(fileMark) > nameBytesMax {
			return "", errKeyTooLong
		}
	}
	return filepath.Join(s.objects, bucket, filepath.Join(parts...)) + fileMark, nil
}

// put writes the object at path from body. With ifAbsent it fails with errExists if there is one.
func (s *store) put(path string, body io.Reader, ifAbsent bool) (fs.FileInfo, error) {
	lock := &s.locks[maphash.String(s.seed, path)%uint64(len(s.locks))]
	var locked, begun bool
	defer func() {
		if locked {
			lock.Unlock()
		}
	}()
	write := func(w io.Writer) error {
		begun = true
		if _, err := io.Copy(w, body); err != nil {
			return err
		}
		lock.Lock() // until the file has its name
		locked = true
		if _, err := os.Lstat(path); ifAbsent && err == nil {
			return errExists
		}
		return nil
	}
	for attempt := 0; ; attempt++ {
		err := atomicfile.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = atomicfile.Write(path, 0o600, write)
		}
		if errors.Is(err, fs.ErrNotExist) && !begun && attempt < 10 {
			continue // remove has deleted a directory that was empty
		}
		if err != nil {
			return nil, err
		}
		return s.stamp(path)
	}
}

// remove deletes the object at path, if there is one, and the directories that become empty.
func (s *store) remove(bucket, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	root := filepath.Join(s.objects, bucket)
	for dir := filepath.Dir(path); dir != root && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
	}
	return nil
}

// errStop ends a walk early.
var errStop = errors.New("stop")

// walk is a walk through the objects of a bucket in the order of their keys.
type walk struct {
	prefix string // of the keys to visit
	after  string // the key after which to begin
	skip   string // prefix of keys to pass over, if not empty; visit may change it
	visit  func(key string, info fs.FileInfo) error
}

// in visits the objects of a directory, whose keys begin with base.
func (w *walk) in(dir, base string) error {
	type entry struct {
		key  string
		file fs.DirEntry // nil for a directory
		path string
	}
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var entries []entry
	for _, e := range list {
		name, file := strings.CutSuffix(e.Name(), fileMark)
		if e.IsDir() {
			name, file = e.Name(), false
		} else if !file {
			continue // being written
		}
		part, ok := unescape(name)
		if !ok {
			continue
		}
		if file {
			entries = append(entries, entry{key: base + part, file: e})
		} else {
			entries = append(entries, entry{key: base + part + "/", path: filepath.Join(dir, e.Name())})
		}
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].key < entries[j].key })
	for _, e := range entries {
		skipped := w.skip != "" && strings.HasPrefix(e.key, w.skip)
		switch {
		case skipped:
		case e.file == nil:
			related := strings.HasPrefix(e.key, w.prefix) || strings.HasPrefix(w.prefix, e.key)
			if !related || e.key <= w.after && !strings.HasPrefix(w.after, e.key) {
				continue
			}
			if err := w.in(e.path, e.key); err != nil {
				return err
			}
		case strings.HasPrefix(e.key, w.prefix) && e.key > w.after:
			info, err := e.file.Info()
			if err != nil {
				continue // removed meanwhile
			}
			if err := w.visit(e.key, info); err != nil {
				return err
			}
		}
	}
	return nil
}

// stampStep is a difference of times that all file systems can represent.
const stampStep = 100 * time.Nanosecond

// stamp gives a file that was written a time that no other has, from which its tag follows. The
// file system's own times are several milliseconds coarse.
func (s *store) stamp(path string) (fs.FileInfo, error) {
	for {
		last := s.stamped.Load()
		next := max(time.Now().UnixNano(), last+int64(stampStep))
		if !s.stamped.CompareAndSwap(last, next) {
			continue
		}
		at := time.Unix(0, next)
		if err := os.Chtimes(path, at, at); err != nil {
			return nil, err
		}
		return os.Stat(path)
	}
}

// tag returns the entity tag of an object's file, quoted. It changes whenever the object does.
func tag(info fs.FileInfo) string {
	return fmt.Sprintf("\"%x-%x\"", info.ModTime().UnixNano(), info.Size())
}

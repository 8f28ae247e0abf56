package depot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/wire"
)

// source is where the files of one checkpoint are read.
type source interface {
	// read returns n bytes starting at offset, or fewer if the file ends first, and the size of the
	// whole file, -1 if it is unknown.
	read(ctx context.Context, file string, offset, n int64) (b []byte, size int64, err error)
}

// pieceBytes is the amount requested from a file at once: the cost of a lost connection.
const pieceBytes = 8 << 20

// pieceTimeout is the time limit for a piece: 8 MiB at 30 KiB a second.
const pieceTimeout = 5 * time.Minute

// Fetch downloads the depot's newest checkpoint, or the only one, into the directory dir, which
// must not exist, and returns its manifest. Before it fetches any other file, it calls check to
// decide whether the manifest is the wanted one. It compares every file with the manifest, and
// leaves nothing of an incomplete checkpoint.
func (d *Depot) Fetch(ctx context.Context, dir string, check func(checkpoint.Manifest) error) (checkpoint.Manifest, error) {
	m, err := d.fetch(ctx, dir, check)
	if err != nil {
		return checkpoint.Manifest{}, fmt.Errorf("fetch checkpoint from %s: %w", d, err)
	}
	return m, nil
}

// Manifest returns the manifest of the depot's newest checkpoint, or of the only one.
func (d *Depot) Manifest(ctx context.Context) (checkpoint.Manifest, error) {
	m, _, err := d.manifest(ctx)
	if err != nil {
		return checkpoint.Manifest{}, fmt.Errorf("checkpoint at %s: %w", d, err)
	}
	return m, nil
}

// manifest returns the manifest, and the source of the files that it lists.
func (d *Depot) manifest(ctx context.Context) (m checkpoint.Manifest, f *fetching, err error) {
	asking, cancel := d.options.bounded(ctx)
	defer cancel()
	from, err := d.place.source(asking)
	if err != nil {
		return m, nil, err
	}
	f = &fetching{from: from, options: d.options}
	b, _, err := f.piece(ctx, checkpoint.ManifestFile, 0, checkpoint.ManifestBytesMax+1)
	if err != nil {
		return m, nil, err
	}
	if m, err = checkpoint.ParseManifest(b); err != nil {
		return m, nil, err
	}
	for _, file := range m.Files {
		if f.total += file.Bytes; file.Bytes > d.options.BytesMax || f.total > d.options.BytesMax {
			return m, nil, fmt.Errorf("its files have more than %d bytes", d.options.BytesMax)
		}
	}
	return m, f, nil
}

func (d *Depot) fetch(ctx context.Context, dir string, check func(checkpoint.Manifest) error) (m checkpoint.Manifest, err error) {
	m, f, err := d.manifest(ctx)
	if err != nil {
		return m, err
	}
	if err := check(m); err != nil {
		return m, err
	}
	return m, atomicfile.WriteDir(ctx, dir, func(create atomicfile.Create) error {
		for _, file := range m.Files {
			if err := f.file(ctx, create, file); err != nil {
				return err
			}
		}
		return save(create, checkpoint.ManifestFile, m.Bytes())
	})
}

// save writes a small file.
func save(create atomicfile.Create, name string, b []byte) error {
	out, err := create(name)
	if err != nil {
		return err
	}
	_, err = out.Write(b)
	return errors.Join(err, out.Close())
}

// fetching is a source that retries failed requests.
type fetching struct {
	from        source
	options     Options
	done, total uint64 // bytes
}

func (f *fetching) piece(ctx context.Context, file string, offset, n int64) (b []byte, size int64, err error) {
	ctx, cancel := f.options.bounded(ctx)
	defer cancel()
	err = f.options.retry(ctx, func() error {
		once, cancel := context.WithTimeout(ctx, pieceTimeout)
		defer cancel()
		b, size, err = f.from.read(once, file, offset, n)
		return err
	})
	return b, size, err
}

// file fetches one file.
func (f *fetching) file(ctx context.Context, create atomicfile.Create, want checkpoint.File) (err error) {
	out, err := create(want.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	sum := sha256.New()
	size := int64(want.Bytes)
	for at := int64(0); at < size; {
		n := min(pieceBytes, size-at)
		b, has, err := f.piece(ctx, want.File, at, n)
		if err != nil {
			return err
		}
		if int64(len(b)) != n || has >= 0 && has != size {
			return &checkpoint.CorruptError{File: want.File, Reason: fmt.Sprintf("it has %d bytes instead of %d", max(has, at+int64(len(b))), size)}
		}
		sum.Write(b)
		if _, err := out.Write(b); err != nil {
			return err
		}
		at += n
		if f.done += uint64(n); f.options.Progress != nil {
			f.options.Progress(f.done, f.total)
		}
	}
	if got := wire.Hash(sum.Sum(nil)); got != want.SHA256 {
		return &checkpoint.CorruptError{File: want.File, Reason: fmt.Sprintf("its SHA-256 is %s instead of %s", got, want.SHA256)}
	}
	return nil
}

// web is a directory on an HTTP server.
type web struct {
	base    string // URL, ending in a slash
	token   string // for the server itself, not for redirect targets
	shown   string // the URL without a password
	options Options
}

func (w web) read(ctx context.Context, file string, offset, n int64) ([]byte, int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+file, nil)
	if err != nil {
		return nil, 0, permanent{err}
	}
	// otherwise ranges would refer to compressed bytes
	request.Header.Set("Accept-Encoding", "identity")
	request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+n-1))
	if w.token != "" {
		request.Header.Set("Authorization", "Bearer "+w.token)
	}
	response, err := w.options.Client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	size := response.ContentLength
	switch response.StatusCode {
	case http.StatusPartialContent:
		if size, err = rangeSize(response.Header.Get("Content-Range"), offset); err != nil {
			return nil, 0, permanent{fmt.Errorf("%s: %w", file, err)}
		}
	case http.StatusOK: // the server does not support ranges
		if _, err := io.CopyN(io.Discard, response.Body, offset); err != nil {
			return nil, 0, fmt.Errorf("%s ended before byte %d: %w", file, offset, err)
		}
	default:
		return nil, 0, statusError(file, response)
	}
	b, err := io.ReadAll(io.LimitReader(response.Body, n))
	if err == nil && size >= 0 && int64(len(b)) < min(n, size-offset) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s after %d bytes: %w", file, offset+int64(len(b)), err)
	}
	return b, size, nil
}

// rangeSize returns the size of the whole file, -1 if it is unknown, from a Content-Range that must
// begin at offset.
func rangeSize(header string, offset int64) (int64, error) {
	text, ok := strings.CutPrefix(header, fmt.Sprintf("bytes %d-", offset))
	_, total, ok2 := strings.Cut(text, "/")
	if !ok || !ok2 {
		return 0, fmt.Errorf("it sent the range %.100q, want the one from byte %d", header, offset)
	}
	size, err := strconv.ParseInt(total, 10, 64)
	if err != nil || size < 0 {
		return -1, nil
	}
	return size, nil
}

// missingError is the answer of a server that it has no such file.
type missingError struct{ error }

// Is reports whether target is fs.ErrNotExist.
func (missingError) Is(target error) bool { return target == fs.ErrNotExist }

// statusError returns the error of an unexpected response. It includes the server's message if that
// is short text.
func statusError(what string, response *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(response.Body, 200))
	err := fmt.Errorf("%s: %s", what, response.Status)
	if text := strings.TrimSpace(string(b)); text != "" && !strings.HasPrefix(text, "<") {
		err = fmt.Errorf("%w: %q", err, text)
	}
	switch code := response.StatusCode; {
	case code == http.StatusNotFound:
		return permanent{missingError{err}}
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		return err
	}
	return permanent{err}
}

package depot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/wire"
)

// source is where the files of one checkpoint are read.
type source interface {
	// read returns n bytes starting at offset, or fewer if the file ends first. With an error, its
	// bytes are those that came before.
	read(ctx context.Context, file string, offset, n int64) (extent, error)

	// close ends what a read left open for the next.
	close()
}

// extent is consecutive bytes of a file.
type extent struct {
	bytes   []byte
	size    int64  // of the whole file, -1 if it is unknown
	version string // a strong validator: the same one means the same bytes; "" if there is none
}

// pieceBytes is the amount requested from a file at once: the most that a killed fetch loses.
const pieceBytes = 8 << 20

// pieceTimeout is the time limit for a piece: 8 MiB at 30 KiB a second.
const pieceTimeout = 5 * time.Minute

// Fetch downloads the depot's newest checkpoint, or the only one, into the directory dir, which
// must not exist, and returns its manifest. Before it fetches any other file, it calls check to
// decide whether the manifest is the wanted one. It compares every file with the manifest, and
// leaves nothing of an incomplete checkpoint in dir.
func (d *Depot) Fetch(ctx context.Context, dir string, check func(checkpoint.Manifest) error) (checkpoint.Manifest, error) {
	m, err := d.fetch(ctx, dir, check)
	if err != nil {
		return checkpoint.Manifest{}, fmt.Errorf("fetch checkpoint from %s: %w", d, err)
	}
	return m, nil
}

// Manifest returns the manifest of the depot's newest checkpoint, or of the only one.
func (d *Depot) Manifest(ctx context.Context) (checkpoint.Manifest, error) {
	m, f, err := d.manifest(ctx)
	if err != nil {
		return checkpoint.Manifest{}, fmt.Errorf("checkpoint at %s: %w", d, err)
	}
	f.from.close()
	return m, nil
}

// manifest returns the manifest, and the source of the files that it lists.
func (d *Depot) manifest(ctx context.Context) (m checkpoint.Manifest, f *fetching, err error) {
	asking, cancel := d.options.bounded(ctx)
	defer cancel()
	from, err := d.place.source(asking, false)
	if err != nil {
		return m, nil, err
	}
	defer func() {
		if err != nil {
			from.close()
		}
	}()
	f = &fetching{from: from, options: d.options}
	got, err := f.piece(ctx, checkpoint.ManifestFile, 0, checkpoint.ManifestBytesMax+1)
	if err != nil {
		return m, nil, err
	}
	if m, err = checkpoint.ParseManifest(got.bytes); err != nil {
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
	defer f.from.close()
	if err := check(m); err != nil {
		return m, err
	}
	return m, f.writeDir(ctx, d.String(), dir, func(into *partialDir) error {
		for _, file := range m.Files {
			if err := f.file(ctx, into, file.File, file.File, &file); err != nil {
				return err
			}
		}
		return into.save(checkpoint.ManifestFile, m.Bytes())
	})
}

// fetching is a source that retries failed requests.
type fetching struct {
	from        source
	options     Options
	done, total uint64 // bytes
}

// piece returns n bytes of a file starting at offset, or fewer if the file ends first. A request
// that fails is repeated for the bytes that are missing, as long as some come.
func (f *fetching) piece(ctx context.Context, file string, offset, n int64) (all extent, err error) {
	ctx, cancel := f.options.bounded(ctx)
	defer cancel()
	for {
		before := len(all.bytes)
		err = f.options.retry(ctx, func() error {
			once, cancel := context.WithTimeout(ctx, pieceTimeout)
			defer cancel()
			had := int64(len(all.bytes))
			got, err := f.from.read(once, file, offset+had, n-had)
			if err != nil && len(got.bytes) == 0 {
				return err
			}
			if had > 0 && (got.version != all.version || got.size != all.size) {
				all = extent{}
				return fmt.Errorf("%s: %w", file, errChanged)
			}
			got.bytes = append(all.bytes, got.bytes...)
			all = got
			return err
		})
		if err == nil || len(all.bytes) <= before || !temporary(err) {
			return all, err
		}
	}
}

// errChanged reports that a server has other bytes than it began to send.
var errChanged = errors.New("the file changed while it was fetched")

// restartsMax is how often a file that changes is begun again.
const restartsMax = 3

// file fetches a file, as the given name. It must be want; nil takes what the server has, which is
// compared with the SHA-256 that a hub states.
func (f *fetching) file(ctx context.Context, into *partialDir, file, as string, want *checkpoint.File) error {
	for begun := 1; ; begun++ {
		before, total := f.done, f.total
		again, err := f.once(ctx, into, file, as, want)
		if err == nil || !again || begun == restartsMax {
			return err
		}
		f.done, f.total = before, total
		f.options.say("fetching %s from its start again: %v", file, err)
	}
}

// once fetches a file, after those of its pieces that are there. With again, the error is one of
// pieces that do not fit together, which are removed.
func (f *fetching) once(ctx context.Context, into *partialDir, file, as string, want *checkpoint.File) (again bool, err error) {
	var p *partial
	if want != nil {
		p, err = into.open(as, statedSum(want.SHA256), int64(want.Bytes))
	} else {
		p, err = into.open(as, "", -1)
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, p.close(again || errors.As(err, new(*checkpoint.CorruptError)))) }()
	begun := p.at
	f.done += uint64(begun)
	if want == nil && begun > 0 {
		f.total += uint64(p.size)
	}
	for first := true; p.at != p.size; first = false {
		n := f.options.piece
		if want != nil {
			n = min(n, p.size-p.at)
		}
		got, err := f.piece(ctx, file, p.at, n)
		if err != nil {
			return errors.Is(err, errChanged), err
		}
		switch {
		case want != nil:
			if int64(len(got.bytes)) != n || got.size >= 0 && got.size != p.size {
				return false, &checkpoint.CorruptError{File: file, Reason: fmt.Sprintf("it has %d bytes instead of %d", max(got.size, p.at+int64(len(got.bytes))), p.size)}
			}
		case p.at == 0:
			if err := p.begin(got.version, got.size); err != nil {
				return false, err
			}
			f.total += uint64(max(got.size, 0))
		case got.version != p.version || got.size != p.size:
			return true, errChanged
		}
		if first && begun > 0 && p.size-begun > f.options.piece { // others are there but for their end
			f.options.say("continuing %s after %d MB of %d MB, which an earlier fetch left", file, begun/1e6, p.size/1e6)
		}
		if f.done += uint64(len(got.bytes)); f.done > f.options.BytesMax {
			return false, fmt.Errorf("its files have more than %d bytes", f.options.BytesMax)
		}
		if err := p.add(got.bytes); err != nil {
			return false, err
		}
		if f.options.Progress != nil {
			f.options.Progress(f.done, max(f.done, f.total))
		}
		if int64(len(got.bytes)) < f.options.piece && p.at != p.size {
			if p.size >= 0 {
				return false, fmt.Errorf("%s after %d of %d bytes: %w", file, p.at, p.size, io.ErrUnexpectedEOF)
			}
			break
		}
	}
	if sum, ok := strings.CutPrefix(p.version, sumPrefix); ok && p.sum() != sum {
		return begun > 0, &checkpoint.CorruptError{File: file, Reason: fmt.Sprintf("its SHA-256 is %s instead of %s", p.sum(), sum)}
	}
	return false, nil
}

// web is a directory on an HTTP server.
type web struct {
	base    string // URL, ending in a slash
	token   string // for the server itself, not for redirect targets
	shown   string // the URL without a password
	options Options
	rest    *response // of a server that ignores ranges; nil if none is under way
}

// response is a file that a server is sending, from byte at on.
type response struct {
	ctx    context.Context // outlives the read that began it
	cancel context.CancelFunc
	file   string
	at     int64

	body    io.ReadCloser // nil before the server has answered
	whole   bool          // goes on to the file's end, whatever was asked for
	size    int64         // of the whole file, -1 if it is unknown
	version string
}

func (r *response) close() {
	r.cancel()
	if r.body != nil {
		_ = r.body.Close()
	}
}

func (w *web) close() {
	if w.rest != nil {
		w.rest.close()
		w.rest = nil
	}
}

// read asks for a part of the file. A server that ignores ranges sends all of it, and the next read
// goes on there: asked again, the server would first send what has come.
func (w *web) read(ctx context.Context, file string, offset, n int64) (extent, error) {
	if w.rest != nil && (w.rest.file != file || w.rest.at != offset) {
		w.close()
	}
	r := w.rest
	w.rest = nil
	if r == nil {
		r = &response{file: file, at: offset}
		r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	}
	stop := context.AfterFunc(ctx, r.cancel)
	b, err := w.next(r, n)
	if err == nil && r.whole && int64(len(b)) == n && r.at != r.size && stop() {
		w.rest = r
	} else {
		stop()
		r.close()
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%s: %w", file, ctx.Err())
	}
	return extent{b, r.size, r.version}, err
}

// next returns the next n bytes of a response, or fewer if the file ends first. With an error, its
// bytes are those that came before.
func (w *web) next(r *response, n int64) (b []byte, err error) {
	if r.body == nil {
		if err := w.ask(r, n); err != nil {
			return nil, err
		}
	}
	from := r.at
	b, err = io.ReadAll(io.LimitReader(r.body, n))
	if r.at += int64(len(b)); err == nil && r.size >= 0 && r.at < min(from+n, r.size) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		err = fmt.Errorf("%s after %d bytes: %w", r.file, r.at, err)
	}
	return b, err
}

// ask begins a response with a request for n bytes.
func (w *web) ask(r *response, n int64) error {
	request, err := http.NewRequestWithContext(r.ctx, http.MethodGet, w.base+r.file, nil)
	if err != nil {
		return permanent{err}
	}
	// otherwise ranges would refer to compressed bytes
	request.Header.Set("Accept-Encoding", "identity")
	request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", r.at, r.at+n-1))
	if w.token != "" {
		request.Header.Set("Authorization", "Bearer "+w.token)
	}
	answer, err := w.options.Client.Do(request)
	if err != nil {
		return err
	}
	r.body, r.size, r.version = answer.Body, answer.ContentLength, version(answer)
	switch answer.StatusCode {
	case http.StatusPartialContent:
		if r.size, err = rangeSize(answer.Header.Get("Content-Range"), r.at); err != nil {
			return permanent{fmt.Errorf("%s: %w", r.file, err)}
		}
	case http.StatusOK: // the server does not support ranges
		r.whole = true
		if _, err := io.CopyN(io.Discard, r.body, r.at); err != nil {
			return fmt.Errorf("%s ended before byte %d: %w", r.file, r.at, err)
		}
	case http.StatusRequestedRangeNotSatisfiable:
		if r.at > 0 { // there were bytes here
			return permanent{fmt.Errorf("%s: %w", r.file, errChanged)}
		}
		return statusError(r.file, answer)
	default:
		return statusError(r.file, answer)
	}
	return nil
}

// sumPrefix begins a version that is the file's SHA-256.
const sumPrefix = "sha256:"

func statedSum(h wire.Hash) string { return sumPrefix + h.String() }

// version returns the version of a file that a server sent. A hub states the SHA-256 of a large
// file, and then redirects to a storage whose ETag may differ from request to request.
func version(response *http.Response) string {
	for r := response; r != nil; r = r.Request.Response {
		if sum, err := wire.ParseHash(strings.Trim(r.Header.Get("X-Linked-Etag"), `"`)); err == nil {
			return statedSum(sum)
		}
	}
	tag := response.Header.Get("Etag")
	if !strings.HasPrefix(tag, `"`) || len(tag) > versionBytesMax { // W/"..." is a weak one
		return ""
	}
	return tag
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

package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/entrain-network/entrain/retry"
)

// hosts are places that offer the same data set. No host is trusted: callers check what they
// receive.
type hosts struct {
	list     []host
	attempts int
	timeout  time.Duration // limit of one attempt
	backoff  time.Duration // before the second attempt; doubled before each further one
	first    atomic.Uint32 // index in list of the host to try first: the last that served
}

// A host is one place that offers the data. It returns a permanentError if retrying cannot help.
type host interface {
	// String is the host's address, as errors show it.
	String() string

	// rangeOf fills b with the bytes at offset of a file of the given size.
	rangeOf(ctx context.Context, file string, offset, size uint64, b []byte) error

	// all returns a file, or a prefix of it that is longer than most.
	all(ctx context.Context, file string, most int) ([]byte, error)
}

// backoffMax is the longest wait between two attempts.
const backoffMax = 30 * time.Second

// web is a host over HTTP; any static host works. It requests ranges. A host without range support
// is read up to the range, which works but is slow.
type web struct {
	base   string // URL of the directory, ending in a slash
	client *http.Client
}

// String returns the URL without a password.
func (w web) String() string {
	u, err := url.Parse(w.base)
	if err != nil {
		return "the address of the data" // unreachable: the address was parsed before
	}
	return u.Redacted()
}

// parseWeb checks the address of a directory.
func parseWeb(address string) (base string, err error) {
	const want = "want https://host/directory"
	u, err := url.Parse(address)
	if err != nil {
		// err may show a password
		return "", errors.New("address of the data: " + want)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		if u.User == nil && strings.Contains(address, "@") { // a password elsewhere
			return "", errors.New("address of the data: " + want)
		}
		return "", fmt.Errorf("address of the data %q: %s", u.Redacted(), want)
	}
	return strings.TrimSuffix(address, "/") + "/", nil
}

// A permanentError is an error that retrying cannot fix.
type permanentError struct{ error }

// Unwrap returns the error.
func (e permanentError) Unwrap() error { return e.error }

// get fills b with the bytes at offset of a file of the given size. It retries, also at other
// hosts, until check accepts the bytes.
func (h *hosts) get(ctx context.Context, file string, offset, size uint64, b []byte, check func([]byte) error) error {
	return h.retry(ctx, func(ctx context.Context, at host) error {
		if err := at.rangeOf(ctx, file, offset, size, b); err != nil {
			return err
		}
		return check(b)
	})
}

// all returns the whole of a small file, which check must accept.
func (h *hosts) all(ctx context.Context, file string, most int, check func([]byte) error) (b []byte, err error) {
	err = h.retry(ctx, func(ctx context.Context, at host) error {
		if b, err = at.all(ctx, file, most); err != nil {
			return err
		}
		if len(b) > most {
			return fmt.Errorf("%s of %s has more than %d bytes", file, at, most)
		}
		if err := check(b); err != nil {
			return fmt.Errorf("%s of %s: %w", file, at, err)
		}
		return nil
	})
	return b, err
}

// retry calls do with one host after the other until it succeeds, the attempts are used up, or all
// hosts have failed permanently. It returns the last error of each.
func (h *hosts) retry(ctx context.Context, do func(ctx context.Context, at host) error) error {
	faults := make([]error, len(h.list))
	first := int(h.first.Load())
	pauses := retry.Policy{Min: h.backoff, Max: backoffMax}
	for attempt := range h.attempts * len(h.list) {
		i := (first + attempt) % len(h.list)
		var permanent permanentError
		if errors.As(faults[i], &permanent) {
			continue
		}
		if attempt > 0 && attempt%len(h.list) == 0 {
			if err := retry.Wait(ctx, pauses.Pause(attempt/len(h.list))); err != nil {
				return err
			}
		}
		once, cancel := context.WithTimeoutCause(ctx, h.timeout, fmt.Errorf("%s: no answer within %v", h.list[i], h.timeout))
		err := do(once, h.list[i])
		if err != nil && once.Err() != nil {
			err = context.Cause(once)
		}
		cancel()
		if err == nil {
			h.first.Store(uint32(i))
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		faults[i] = err
	}
	return errors.Join(faults...)
}

// all reads a whole file.
func (w web) all(ctx context.Context, file string, most int) ([]byte, error) {
	response, err := w.ask(ctx, file, "")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(io.LimitReader(response.Body, int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.base+file, err)
	}
	return b, nil
}

// ask sends a request and returns a response of status 200 or 206, whose body must be closed.
func (w web) ask(ctx context.Context, file, ranges string) (*http.Response, error) {
	address := w.base + file
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, permanentError{err}
	}
	// otherwise ranges would refer to compressed bytes
	request.Header.Set("Accept-Encoding", "identity")
	if ranges != "" {
		request.Header.Set("Range", ranges)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return nil, err
	}
	switch code := response.StatusCode; {
	case code == http.StatusOK || code == http.StatusPartialContent && ranges != "":
		return response, nil
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		err = fmt.Errorf("%s: %s", address, response.Status)
	default:
		err = permanentError{fmt.Errorf("%s: %s", address, response.Status)}
	}
	response.Body.Close()
	return nil, err
}

// rangeOf fills b with a range of a file.
func (w web) rangeOf(ctx context.Context, file string, offset, size uint64, b []byte) error {
	address := w.base + file
	response, err := w.ask(ctx, file, fmt.Sprintf("bytes=%d-%d", offset, offset+uint64(len(b))-1))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		if n := response.ContentLength; n >= 0 && uint64(n) != size {
			return permanentError{fmt.Errorf("%s has %d bytes, want %d", address, n, size)}
		}
		if _, err := io.CopyN(io.Discard, response.Body, int64(offset)); err != nil {
			return fmt.Errorf("%s: %w", address, short(err))
		}
	} else if err := checkRange(response.Header.Get("Content-Range"), offset, size); err != nil {
		return permanentError{fmt.Errorf("%s: %w", address, err)}
	}
	if n, err := io.ReadFull(response.Body, b); err != nil {
		return fmt.Errorf("%s ended after %d of %d bytes: %w", address, n, len(b), short(err))
	}
	return nil
}

// checkRange compares the range that a host sends with the requested one.
func checkRange(header string, offset, size uint64) error {
	var from, to uint64
	var total string
	if _, err := fmt.Sscanf(header, "bytes %d-%d/%s", &from, &to, &total); err != nil || from != offset {
		return fmt.Errorf("it sent the range %q, want the one from byte %d", header, offset)
	}
	if n, err := strconv.ParseUint(total, 10, 64); err == nil && n != size {
		return fmt.Errorf("the file has %d bytes, want %d", n, size)
	}
	return nil
}

// short converts both end-of-file errors of ReadFull to one.
func short(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

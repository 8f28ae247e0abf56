package bucket

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// Want describes an object to fetch.
type Want struct {
	Location Location // where its author publishes
	Name     Name
	Max      int                // the largest body in bytes; 0: ObjectBytesMax
	Check    func([]byte) error // checks the body beyond the package's own checks; nil: none
}

// most is the largest body in bytes.
func (w Want) most() int {
	if w.Max <= 0 || w.Max > ObjectBytesMax {
		return ObjectBytesMax
	}
	return w.Max
}

// Opener opens the store at a location.
type Opener func(Location) (Store, error)

// storesMax is the most stores that a reader keeps. A run has at most 256 members, and buckets
// seldom change.
const storesMax = 1024

// Reader fetches objects from any member's bucket. Its methods may be called from any goroutine.
type Reader struct {
	open    Opener
	options Options
	Traffic Traffic // valid objects received

	storesMu sync.Mutex
	stores   map[Location]Store
}

// NewReader returns a reader of the stores that open makes.
func NewReader(open Opener, o Options) *Reader {
	o.fill()
	return &Reader{open: open, options: o, stores: make(map[Location]Store)}
}

// store returns the store of a location.
func (r *Reader) store(l Location) (Store, error) {
	r.storesMu.Lock()
	defer r.storesMu.Unlock()
	if s, ok := r.stores[l]; ok {
		return s, nil
	}
	s, err := r.open(l)
	if err != nil {
		return nil, err
	}
	if len(r.stores) >= storesMax {
		clear(r.stores)
	}
	r.stores[l] = s
	return s, nil
}

// Get returns the body of an object after checking that it has that name, is signed by its member,
// and has the content that the name states. It reads at most Max bytes of the body. Network
// failures are retried until ctx ends or the attempts are used up; a wrong object is not.
func (r *Reader) Get(ctx context.Context, w Want) (body []byte, err error) {
	s, err := r.store(w.Location)
	if err != nil {
		return nil, err
	}
	err = r.options.retry(ctx, passing, func() (err error) {
		body, err = r.once(ctx, s, w)
		return err
	})
	return body, err
}

// once is one attempt of Get.
func (r *Reader) once(ctx context.Context, s Store, w Want) ([]byte, error) {
	fault := func(kind, cause error) error {
		return &Error{Op: "get", At: w.Location.String(), Key: w.Name.Path(), Kind: kind, Cause: cause}
	}
	most := w.most()
	object, whole, err := s.Get(ctx, w.Name.Path(), 0, int64(most+EnvelopeBytes))
	if err != nil {
		return nil, err
	}
	if whole.Bytes > int64(most+EnvelopeBytes) {
		return nil, fault(ErrTooLarge, fmt.Errorf("%d bytes, more than %d", whole.Bytes, most+EnvelopeBytes))
	}
	n, body, err := Open(object)
	switch {
	case err != nil:
	case n != w.Name:
		err = fmt.Errorf("it is the object %v", n)
	default:
		err = checkContent(n, body)
	}
	if err == nil && w.Check != nil {
		err = w.Check(body)
	}
	if err != nil {
		return nil, fault(ErrLied, err)
	}
	r.Traffic.add(len(object))
	return body, nil
}

// parallel is the number of objects that Fetch fetches at once.
const parallel = 16

// Fetch fetches objects in parallel and calls each once for each object as it arrives, never
// concurrently. It returns when all have arrived or failed.
func (r *Reader) Fetch(ctx context.Context, wants []Want, each func(i int, body []byte, err error)) {
	var mu sync.Mutex
	var work sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for i, w := range wants {
		slots <- struct{}{}
		work.Go(func() {
			body, err := r.Get(ctx, w)
			<-slots
			mu.Lock()
			defer mu.Unlock()
			each(i, body, err)
		})
	}
	work.Wait()
}

// List returns the names of at most max objects (0: listMax) in a bucket that begin with a prefix
// (see Name.Prefix, WindowPrefix, RunPrefix), in the order of their paths. It skips anything else
// in the bucket. A store that lists what was not requested, or repeats itself endlessly, fails with
// ErrLied. A listed name is no evidence that the object is valid.
func (r *Reader) List(ctx context.Context, l Location, prefix string, max int) ([]Name, error) {
	s, err := r.store(l)
	if err != nil {
		return nil, err
	}
	if max <= 0 || max > listMax {
		max = listMax
	}
	var names []Name
	after := ""
	for range listMax/pageMax + 2 { // pages, some of which may hold no objects of the run
		var page []Object
		err := r.options.retry(ctx, passing, func() (err error) {
			page, err = s.List(ctx, prefix, after, pageMax)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, o := range page {
			if !strings.HasPrefix(o.Key, prefix) || o.Key <= after {
				return nil, &Error{Op: "list", At: l.String(), Key: prefix, Kind: ErrLied, Cause: fmt.Errorf("it lists %.300q after %.300q", o.Key, after)}
			}
			after = o.Key
			if n, err := ParseName(o.Key); err == nil {
				if names = append(names, n); len(names) == max {
					return names, nil
				}
			}
		}
		if len(page) < pageMax {
			return names, nil
		}
	}
	return names, nil
}

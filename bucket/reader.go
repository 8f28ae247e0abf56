package bucket

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Want is an object somebody needs.
type Want struct {
	Location Location // where its author publishes
	Name     Name
	Max      int                // bytes of its body; 0: ObjectBytesMax
	Check    func([]byte) error // of the body, beyond what the package checks by itself; nil: none
	Wait     bool               // for an object that is not there yet, rather than failing with ErrMissing
}

// Opener makes a store of a location.
type Opener func(Location) (Store, error)

// storesMax is how many stores a reader keeps; a run has at most 256 members, and buckets change seldom.
const storesMax = 1024

// Reader gets objects from everybody's buckets. Its methods may be called from any goroutine.
type Reader struct {
	open    Opener
	options Options
	Traffic Traffic // what it has received and found right

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

// Get returns the body of an object, checked: it is the one of that name, signed by its member, and has the content that the name says. No more
// than Max bytes of it are read. What the network does is tried again until ctx ends or the attempts are used up; a lie is not.
func (r *Reader) Get(ctx context.Context, w Want) (body []byte, err error) {
	s, err := r.store(w.Location)
	if err != nil {
		return nil, err
	}
	again, o := passing, r.options
	if w.Wait {
		o.Attempts = 1 << 30 // until ctx ends
		again = func(err error) bool { return passing(err) || errors.Is(err, ErrMissing) }
	}
	err = o.retry(ctx, again, func() (err error) {
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
	most := w.Max
	if most <= 0 || most > ObjectBytesMax {
		most = ObjectBytesMax
	}
	object, size, err := s.Get(ctx, w.Name.Path(), 0, int64(most+EnvelopeBytes))
	if err != nil {
		return nil, err
	}
	if size > int64(most+EnvelopeBytes) {
		return nil, fault(ErrTooLarge, fmt.Errorf("%d bytes instead of at most %d", size, most+EnvelopeBytes))
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

// parallel is how many objects Fetch gets at once.
const parallel = 16

// Fetch gets many objects, several at once, and calls each for every one of them as it comes, not for two at the same time. It returns when all
// have come or failed.
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

// List returns the names of at most max objects (0: ListMax) in a bucket that begin with a prefix (see Name.Prefix, WindowPrefix, RunPrefix), in
// the order of their paths. Other things in the bucket are passed over; a store that lists what was not asked for, or the same for ever, lies.
// That a name is listed says nothing about what is there.
func (r *Reader) List(ctx context.Context, l Location, prefix string, max int) ([]Name, error) {
	s, err := r.store(l)
	if err != nil {
		return nil, err
	}
	if max <= 0 || max > ListMax {
		max = ListMax
	}
	var names []Name
	after := ""
	for range ListMax/pageMax + 2 { // pages, of which some may hold nothing of ours
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

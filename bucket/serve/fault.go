package serve

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// faults tells a server's owner, once each, what keeps clients from their objects.
type faults struct {
	tell func(string) // nil: nobody is told

	mu   sync.Mutex // guards what follows
	told map[string]bool
	full int64 // bytes of the smallest body that the disk had no room for; 0: none
}

// faultsMax bounds the faults told of, which clients cause.
const faultsMax = 64

// full reports whether a disk, or a quota, has no room.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// note tells of the fault that a request met. A request that was answered shows that the disk has
// room again if it wrote as much as was refused.
func (f *faults) note(s *Server, q *request, err error) {
	if f.tell == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	wrote := max(q.r.ContentLength, 1)
	var known *failure
	switch {
	case err == nil:
		if f.full > 0 && q.r.Method == http.MethodPut && wrote >= f.full {
			f.full = 0
			f.tell("the disk has room again: objects are taken")
		}
	case full(err):
		if f.full == 0 {
			f.tell(fmt.Sprintf("the disk of %s is full: objects are refused until it has room; free some space there", s.store.objects))
		}
		if f.full == 0 || wrote < f.full {
			f.full = wrote
		}
	case errors.As(err, &known):
		f.once(refusal(q, known))
	case errors.As(err, new(syscall.Errno)) && !errors.As(err, new(*net.OpError)):
		// A file failed, not the client's connection.
		f.once(fmt.Sprintf("%s of %s failed: %v", q.r.Method, q.r.URL.Path, err))
	}
}

// refusal says why all requests of a client are refused, "" if the reason is in this one alone.
func refusal(q *request, f *failure) string {
	switch own := q.own; {
	case f == errNoBucket:
		return fmt.Sprintf("requests for bucket %q are refused, because it does not exist: start this server with its name, as in entrain bucket DIR %s", own, own)
	case f == errWrongSignature && q.has(own):
		return fmt.Sprintf("requests for bucket %q are refused, because another secret signs them: give its clients %s.write or %s.read as they are now", own, own, own)
	case f == errSkewed:
		return "requests are refused, because their clock or this machine's is wrong by more than 15 minutes: set it (timedatectl set-ntp true)"
	case f.code == errDenied.code && q.bucket != own && q.bucket != "":
		return fmt.Sprintf("requests are refused, because they ask for bucket %.70q with the credentials of %q: correct the bucket's name there", q.bucket, own)
	}
	return ""
}

// once tells of a fault unless it has.
func (f *faults) once(text string) {
	if text == "" || f.told[text] || len(f.told) == faultsMax {
		return
	}
	if f.told == nil {
		f.told = map[string]bool{}
	}
	f.told[text] = true
	f.tell(text)
}

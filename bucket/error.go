package bucket

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// The reasons for a failure. Errors of this package are *[Error] and match one of these by
// errors.Is.
var (
	ErrMissing           = errors.New("no such object")
	ErrExists            = errors.New("the object already exists")
	ErrLied              = errors.New("the bytes are not what the name says")
	ErrTooLarge          = errors.New("the object is larger than allowed")
	ErrSlow              = errors.New("no complete answer in time")
	ErrRefused           = errors.New("the store refuses access: check the credentials, the policy and the name of the bucket")
	ErrClock       error = wrongClock{} // an ErrRefused
	ErrUnreachable       = errors.New("the server does not answer like an S3 store")
	ErrFull              = errors.New("the store has no room for it: free some space there")
	ErrForbidden         = errors.New("the address is not on the public internet")
)

// wrongClock is the type of ErrClock.
type wrongClock struct{}

func (wrongClock) Error() string {
	return "the store refuses access, because this machine's clock or its own is wrong: set it (timedatectl set-ntp true)"
}

func (wrongClock) Is(target error) bool { return target == ErrRefused }

// hashDigits is the length of a hash in a key.
const hashDigits = 64

// Advise adds to a refusal of a stranger's address how a network of one's own reads its buckets.
func Advise(err error) error {
	if errors.Is(err, ErrForbidden) {
		return fmt.Errorf("%w; in a network of your own say --private-buckets", err)
	}
	return err
}

// Error is a failed operation on a bucket. It never holds a secret.
type Error struct {
	Op    string // put, get, stat, list, delete
	At    string // the location, redacted
	Key   string // of the object, or the prefix of a listing
	Kind  error  // one of the Err values
	Cause error  // more about it, or nil
}

// Error returns the operation, the key with hashes cut to eight digits, the bucket and the reason.
func (e *Error) Error() string {
	parts := strings.Split(e.Key, "/")
	for i, part := range parts {
		if len(part) == hashDigits {
			parts[i] = part[:8]
		}
	}
	text := fmt.Sprintf("%s %s in bucket %s: %v", e.Op, strings.Join(parts, "/"), e.At, e.Kind)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// passing reports whether trying again may help.
func passing(err error) bool { return errors.Is(err, ErrUnreachable) }

// slow replaces an expired context's error with ErrSlow and returns other errors unchanged.
func slow(ctx context.Context, err *Error) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err.Cause, context.DeadlineExceeded) {
		err.Kind = ErrSlow
	}
	return err
}

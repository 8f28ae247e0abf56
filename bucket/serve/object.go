package serve

import (
	"encoding/xml"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// put writes an object.
func (q *request) put() error {
	path, err := q.path(q.bucket, q.key)
	if err != nil {
		return err
	}
	ifAbsent, err := q.ifAbsent(path)
	if err != nil {
		return err
	}
	body, err := q.body()
	if err != nil {
		return err
	}
	info, err := q.store.put(path, body, ifAbsent)
	if err != nil {
		return err
	}
	q.w.Header().Set("ETag", tag(info))
	return nil
}

// body returns the body of a request that writes.
func (q *request) body() (*payload, error) {
	p, err := newPayload(q.r, &q.signature)
	if err == nil && q.r.ContentLength == 0 && q.r.Header.Get("Expect") != "" {
		// Nothing will be read, so net/http does not send this, but boto3 waits for it.
		q.w.WriteHeader(http.StatusContinue)
	}
	return p, err
}

// ifAbsent reports whether a write is conditional on there being no object yet. If there is one
// it fails at once, so that a client which expects to be asked for the body keeps it.
func (q *request) ifAbsent(path string) (bool, error) {
	if q.r.Header.Get("If-Match") != "" {
		return false, errNotImplemented
	}
	switch q.r.Header.Get("If-None-Match") {
	case "":
		return false, nil
	case "*":
		if _, err := os.Lstat(path); err == nil {
			return true, errExists
		}
		return true, nil
	}
	return false, errNotImplemented
}

// get answers with an object, or with a part of it.
func (q *request) get() error {
	path, err := q.path(q.bucket, q.key)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errNoKey
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header, etag := q.w.Header(), tag(info)
	header.Set("ETag", etag)
	if match := q.r.Header.Get("If-Match"); match != "" && match != "*" && strings.Trim(match, `"`) != strings.Trim(etag, `"`) {
		return errNotMatched
	}
	q.r.Header.Del("If-Match")
	if text := q.r.Header.Get("Range"); text != "" {
		switch known, ok := checkRange(text, info.Size()); {
		case !known:
			q.r.Header.Del("Range") // S3 then sends the whole
		case !ok:
			return errRange
		}
	}
	header.Set("Content-Type", "binary/octet-stream")
	header.Set("Accept-Ranges", "bytes")
	http.ServeContent(q.w, q.r, "", info.ModTime(), f)
	return nil
}

// checkRange reports whether a Range header is known, that is one range of bytes, and whether an
// object of the size given has any byte of it.
func checkRange(text string, size int64) (known, ok bool) {
	text, found := strings.CutPrefix(text, "bytes=")
	first, last, dash := strings.Cut(text, "-")
	if !found || !dash {
		return false, false
	}
	from, fromErr := strconv.ParseUint(first, 10, 63)
	to, toErr := strconv.ParseUint(last, 10, 63)
	switch {
	case first == "" && toErr == nil:
		return true, to > 0 && size > 0
	case fromErr != nil || last != "" && (toErr != nil || to < from):
		return false, false
	}
	return true, from < uint64(size)
}

// delete removes an object. As in S3, one that does not exist is not an error.
func (q *request) delete() error {
	path, err := q.path(q.bucket, q.key)
	if err != nil {
		return err
	}
	if err := q.remove(q.bucket, path); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// deletesMax is the most objects that one request removes.
const deletesMax = 1000

// deletes is the body of a removal of many objects.
type deletes struct {
	XMLName xml.Name `xml:"Delete"`
	Quiet   bool
	Object  []struct{ Key string }
}

type deleted struct {
	XMLName xml.Name `xml:"DeleteResult"`
	XMLNS   string   `xml:"xmlns,attr"`
	Deleted []struct{ Key string }
	Error   []struct{ Key, Code, Message string }
}

// deleteMany removes the objects that the body lists.
func (q *request) deleteMany() error {
	var d deletes
	if err := q.readXML(&d); err != nil {
		return err
	}
	if len(d.Object) > deletesMax {
		return errBadXML
	}
	answer := deleted{XMLNS: namespace}
	for _, o := range d.Object {
		path, err := q.path(q.bucket, o.Key)
		if err == nil {
			err = q.remove(q.bucket, path)
		}
		f := errInternal
		switch {
		case err == nil && !d.Quiet:
			answer.Deleted = append(answer.Deleted, struct{ Key string }{o.Key})
		case err != nil:
			errors.As(err, &f)
			answer.Error = append(answer.Error, struct{ Key, Code, Message string }{o.Key, f.code, f.message})
		}
	}
	return q.reply(answer)
}

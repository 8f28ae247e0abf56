package serve

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/entrain-network/entrain/atomicfile"
)

// Limits of multipart uploads, as Amazon has them.
const (
	partsMax     = 10_000
	partBytesMin = 5 << 20 // except of the last
)

// keyFile is the file of an upload that holds the object's key.
const keyFile = "key"

// createUpload begins an upload.
func (q *request) createUpload() error {
	if _, err := q.path(q.bucket, q.key); err != nil {
		return err
	}
	random := make([]byte, 16)
	rand.Read(random)
	id := hex.EncodeToString(random)
	dir := q.uploadDir(id)
	if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := atomicfile.WriteBytes(filepath.Join(dir, keyFile), 0o600, []byte(q.key)); err != nil {
		return err
	}
	return q.reply(struct {
		XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ InitiateMultipartUploadResult"`
		Bucket, Key, UploadId string
	}{Bucket: q.bucket, Key: q.key, UploadId: id})
}

// uploadDir returns the directory of an upload. Its name marks it as temporary.
func (q *request) uploadDir(id string) string {
	return filepath.Join(q.uploads, q.bucket, atomicfile.TempPrefix+id)
}

// upload returns the directory of the upload that a request names, if it is one of the request's
// object.
func (q *request) upload() (dir string, err error) {
	id := q.query.Get("uploadId")
	if b, err := hex.DecodeString(id); err != nil || len(b) != 16 || strings.ToLower(id) != id {
		return "", errNoUpload
	}
	dir = q.uploadDir(id)
	key, err := os.ReadFile(filepath.Join(dir, keyFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(key) != q.key {
		return "", errNoUpload
	}
	return dir, err
}

// uploadPart writes a part.
func (q *request) uploadPart() error {
	n, err := strconv.ParseUint(q.query.Get("partNumber"), 10, 16)
	if err != nil || n < 1 || n > partsMax {
		return errBadPartNumber
	}
	dir, err := q.upload()
	if err != nil {
		return err
	}
	body, err := q.body()
	if err != nil {
		return err
	}
	path := partFile(dir, n)
	err = atomicfile.Write(path, 0o600, func(w io.Writer) error {
		_, err := io.Copy(w, body)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return errNoUpload // aborted meanwhile
	}
	if err != nil {
		return err
	}
	info, err := q.stamp(path)
	if err != nil {
		return err
	}
	q.w.Header().Set("ETag", tag(info))
	return nil
}

func partFile(dir string, n uint64) string { return filepath.Join(dir, fmt.Sprintf("%05d", n)) }

// completion is the body of the request that completes an upload.
type completion struct {
	XMLName xml.Name `xml:"CompleteMultipartUpload"`
	Part    []struct {
		PartNumber uint64
		ETag       string
	}
}

// completeUpload makes the object of the parts that the body lists.
func (q *request) completeUpload() error {
	path, err := q.path(q.bucket, q.key)
	if err != nil {
		return err
	}
	dir, err := q.upload()
	if err != nil {
		return err
	}
	ifAbsent, err := q.ifAbsent(path)
	if err != nil {
		return err
	}
	var c completion
	if err := q.readXML(&c); err != nil {
		return err
	}
	if err := c.check(dir); err != nil {
		return err
	}
	parts := &partReader{dir: dir, completion: c}
	defer parts.Close()
	info, err := q.store.put(path, parts, ifAbsent)
	if err != nil {
		return err
	}
	// Whatever a crash leaves of the directory is removed after some days.
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return q.reply(struct {
		XMLName                     xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUploadResult"`
		Location, Bucket, Key, ETag string
	}{Location: q.r.URL.Path, Bucket: q.bucket, Key: q.key, ETag: tag(info)})
}

// check checks the list of parts against the files.
func (c *completion) check(dir string) error {
	if len(c.Part) == 0 || len(c.Part) > partsMax {
		return errBadXML
	}
	for i, p := range c.Part {
		last := i == len(c.Part)-1
		if !last && p.PartNumber >= c.Part[i+1].PartNumber {
			return errPartOrder
		}
		info, err := os.Stat(partFile(dir, p.PartNumber))
		if err != nil || strings.Trim(p.ETag, `"`) != strings.Trim(tag(info), `"`) {
			return errBadPart
		}
		if !last && info.Size() < partBytesMin {
			return errTooSmall
		}
	}
	return nil
}

// partReader reads the parts of an upload, one after another.
type partReader struct {
	dir string
	completion
	next int
	file *os.File
}

// Read reads from the current part, or opens the next.
func (r *partReader) Read(b []byte) (int, error) {
	for {
		if r.file == nil {
			if r.next == len(r.Part) {
				return 0, io.EOF
			}
			var err error
			if r.file, err = os.Open(partFile(r.dir, r.Part[r.next].PartNumber)); err != nil {
				return 0, err
			}
			r.next++
		}
		n, err := r.file.Read(b)
		if err == io.EOF {
			err = r.Close()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// Close closes the part that is open.
func (r *partReader) Close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

// abortUpload removes an upload.
func (q *request) abortUpload() error {
	dir, err := q.upload()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

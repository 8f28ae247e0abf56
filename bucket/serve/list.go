package serve

import (
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/entrain-network/entrain/bucket/sigv4"
)

// listing are the fields of a query for a list of objects, in both versions.
var listing = []string{"list-type", "prefix", "delimiter", "max-keys", "encoding-type", "fetch-owner",
	"continuation-token", "start-after", "marker"}

// pageMax is the most objects in a page of a list.
const pageMax = 1000

// page is the answer to a query for a list.
type page struct {
	XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
	Name                  string
	Prefix                string
	Delimiter             string `xml:",omitempty"`
	MaxKeys               int
	EncodingType          string `xml:",omitempty"`
	KeyCount              int
	IsTruncated           bool
	Marker                *string
	NextMarker            string `xml:",omitempty"`
	StartAfter            string `xml:",omitempty"`
	ContinuationToken     string `xml:",omitempty"`
	NextContinuationToken string `xml:",omitempty"`
	Contents              []listed
	CommonPrefixes        []struct{ Prefix string }
}

// listed is one object of a page.
type listed struct {
	Key          string
	LastModified string
	ETag         string
	Size         int64
	StorageClass string
}

// timeFormat is the format of times in XML.
const timeFormat = "2006-01-02T15:04:05.000Z"

// list answers with a page of the bucket's objects.
func (q *request) list() error {
	p := page{Name: q.bucket, MaxKeys: pageMax, EncodingType: q.query.Get("encoding-type")}
	if text := q.query.Get("max-keys"); text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return errBadQuery
		}
		p.MaxKeys = int(min(n, pageMax))
	}
	encode := func(s string) string { return s }
	switch p.EncodingType {
	case "":
	case "url":
		encode = sigv4.EncodePath
	default:
		return errBadQuery
	}
	after, second := q.query.Get("marker"), q.query.Get("list-type") == "2"
	if second {
		after = q.query.Get("start-after")
		p.StartAfter, p.ContinuationToken = encode(after), q.query.Get("continuation-token")
		if p.ContinuationToken != "" {
			b, err := base64.URLEncoding.DecodeString(p.ContinuationToken)
			if err != nil {
				return errBadQuery
			}
			after = string(b)
		}
	} else {
		marker := encode(after)
		p.Marker = &marker
	}
	next, err := q.fill(&p, after, encode)
	if err != nil {
		return err
	}
	p.KeyCount = len(p.Contents) + len(p.CommonPrefixes)
	p.Prefix, p.Delimiter = encode(q.query.Get("prefix")), encode(q.query.Get("delimiter"))
	switch {
	case !p.IsTruncated:
	case second:
		p.NextContinuationToken = base64.URLEncoding.EncodeToString([]byte(next))
	default:
		p.NextMarker = encode(next)
	}
	return q.reply(p)
}

// fill lists the objects after a key, or after the group of keys of which it is the prefix. It
// returns the last key or prefix on the page.
func (q *request) fill(p *page, after string, encode func(string) string) (last string, err error) {
	prefix, delimiter := q.query.Get("prefix"), q.query.Get("delimiter")
	w := walk{prefix: prefix, after: after}
	if delimiter != "" && strings.HasSuffix(after, delimiter) && strings.HasPrefix(after, prefix) && len(after) > len(prefix) {
		w.skip = after
	}
	w.visit = func(key string, info fs.FileInfo) error {
		if p.MaxKeys == 0 {
			return errStop
		}
		if len(p.Contents)+len(p.CommonPrefixes) == p.MaxKeys {
			p.IsTruncated = true
			return errStop
		}
		group, _, grouped := strings.Cut(key[len(prefix):], delimiter)
		if grouped && delimiter != "" {
			w.skip = prefix + group + delimiter
			last = w.skip
			p.CommonPrefixes = append(p.CommonPrefixes, struct{ Prefix string }{encode(last)})
			return nil
		}
		last = key
		p.Contents = append(p.Contents, listed{
			Key: encode(key), Size: info.Size(), ETag: tag(info), StorageClass: "STANDARD",
			LastModified: info.ModTime().UTC().Format(timeFormat),
		})
		return nil
	}
	err = w.in(filepath.Join(q.objects, q.bucket), "")
	if errors.Is(err, errStop) {
		err = nil
	}
	return last, err
}

// buckets is the answer to a query for the buckets: the one of the key that signed it.
type buckets struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListAllMyBucketsResult"`
	Owner   struct{ ID string }
	Buckets struct {
		Bucket struct{ Name, CreationDate string }
	}
}

func (q *request) listBuckets() error {
	info, err := os.Stat(filepath.Join(q.objects, q.bucket))
	if err != nil {
		return err
	}
	var b buckets
	b.Buckets.Bucket.Name, b.Owner.ID = q.bucket, url.PathEscape(q.bucket)
	b.Buckets.Bucket.CreationDate = info.ModTime().UTC().Format(time.RFC3339)
	return q.reply(b)
}

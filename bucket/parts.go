package bucket

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// Objects larger than a part are uploaded in parts, some at a time: stores take at most 5 GB in one
// request. If a part fails, the upload does.
const (
	partSize     = 64 << 20
	partsAtOnce  = 4
	abortTimeout = 5 * time.Second
)

// putParts uploads an object in parts, which become the object together if the condition holds.
func (s *s3) putParts(ctx context.Context, q request, condition http.Header) error {
	var upload struct {
		XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
		UploadId string
	}
	begin := request{method: http.MethodPost, key: q.key, header: q.header, query: url.Values{"uploads": {""}}}
	if err := s.ask(ctx, begin, &upload); err != nil {
		return err
	}
	of := url.Values{"uploadId": {upload.UploadId}}
	err := s.fill(ctx, q, of, condition)
	if err != nil { // providers charge for parts that are left
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
		defer cancel()
		_ = s.ask(ctx, request{method: http.MethodDelete, key: q.key, query: of}, nil)
	}
	return err
}

// fill uploads the parts of an upload and completes it.
func (s *s3) fill(ctx context.Context, q request, of url.Values, condition http.Header) error {
	type part struct {
		PartNumber int
		ETag       string
	}
	parts := make([]part, (q.size+partSize-1)/partSize)
	failed := make([]error, len(parts))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var work sync.WaitGroup
	slots := make(chan struct{}, partsAtOnce)
	for i := range parts {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			number, from := i+1, int64(i)*partSize
			size := min(partSize, q.size-from)
			query := url.Values{"uploadId": of["uploadId"], "partNumber": {strconv.Itoa(number)}}
			answer, err := s.do(ctx, request{method: http.MethodPut, key: q.key, query: query, size: size, body: io.NewSectionReader(q.body, from, size)})
			if err != nil {
				failed[i] = err
				cancel()
				return
			}
			parts[i] = part{number, answer.Header.Get("ETag")}
			answer.Body.Close()
		})
	}
	work.Wait()
	for _, err := range failed {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	list, err := xml.Marshal(struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUpload"`
		Part    []part
	}{Part: parts})
	if err != nil {
		return err
	}
	var completed struct {
		XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
	}
	return s.ask(ctx, request{method: http.MethodPost, key: q.key, query: of, header: condition, body: bytes.NewReader(list), size: int64(len(list))}, &completed)
}

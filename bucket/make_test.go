package bucket

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// Make makes the bucket of a location, unless there is one, and sets its policy, in Amazon's JSON,
// unless that is empty.
func (c *Client) Make(ctx context.Context, l Location, policy string) error {
	opened, err := c.Open(l)
	if err != nil {
		return err
	}
	s := opened.(*s3)
	ctx = allow(ctx, 3, 3*replyBytesMax)
	var r *refusal
	err = s.ask(ctx, request{method: http.MethodPut}, nil)
	if err != nil && !(errors.As(err, &r) && (r.code == "BucketAlreadyOwnedByYou" || r.code == "BucketAlreadyExists")) {
		return s.fault(ctx, "make", "", err)
	}
	if policy == "" {
		return nil
	}
	set := request{method: http.MethodPut, query: url.Values{"policy": {""}}, body: strings.NewReader(policy), size: int64(len(policy))}
	return s.fault(ctx, "set policy of", "", s.ask(ctx, set, nil))
}

// Amazon and Aliyun serve a bucket at a host of its own; certificates have no host with more dots.
func TestAddressesOfBuckets(t *testing.T) {
	c := NewClient(S3Options{})
	defer c.Close()
	for location, want := range map[string]string{
		"s3://minio.example.org/b-1/p":                         "https://minio.example.org/b-1/p/a%20b",
		"s3://minio.example.org:443/b-1":                       "https://minio.example.org/b-1/a%20b",
		"s3://127.0.0.1:9000/b-1?tls=0":                        "http://127.0.0.1:9000/b-1/a%20b",
		"s3://s3.eu-west-1.amazonaws.com/b-1?region=eu-west-1": "https://b-1.s3.eu-west-1.amazonaws.com/a%20b",
		"s3://s3.amazonaws.com/b-1?region=eu-west-1":           "https://b-1.s3.eu-west-1.amazonaws.com/a%20b",
		"s3://s3.amazonaws.com/b.1":                            "https://s3.us-east-1.amazonaws.com/b.1/a%20b",
		"s3://oss-cn-beijing.aliyuncs.com/b-1/p":               "https://b-1.oss-cn-beijing.aliyuncs.com/p/a%20b",
	} {
		l, err := ParseLocation(location)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Open(l)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.(*s3).url(l.key("a b")).String(); got != want {
			t.Errorf("%s: %s, want %s", location, got, want)
		}
	}
}

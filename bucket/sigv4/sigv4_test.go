package sigv4

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// The examples of "Signature Calculations for the Authorization Header: Transferring Payload in a
// Single Chunk" in Amazon's reference of S3.
func TestSignaturesAreAmazons(t *testing.T) {
	const (
		secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
		scope  = "20130524/us-east-1/s3/" + ScopeEnd
	)
	for _, v := range []struct {
		method, path, query, body string
		headers                   map[string]string
		want                      string
	}{
		{"GET", "/test.txt", "", "", map[string]string{"range": "bytes=0-9"}, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"PUT", "/test$file.text", "", "Welcome to Amazon S3.", map[string]string{"date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"}, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
		{"GET", "/", "lifecycle", "", nil, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{"GET", "/", "prefix=J&max-keys=2", "", nil, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	} {
		r, err := http.NewRequest(v.method, "https://examplebucket.s3.amazonaws.com"+v.path, strings.NewReader(v.body))
		if err != nil {
			t.Fatal(err)
		}
		r.URL.RawQuery = v.query
		at, err := time.Parse(TimeLayout, "20130524T000000Z")
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Amz-Date", at.Format(TimeLayout))
		r.Header.Set("X-Amz-Content-Sha256", Hash([]byte(v.body)))
		names := []string{"host", "x-amz-content-sha256", "x-amz-date"}
		for name, value := range v.headers {
			r.Header.Set(name, value)
			names = append(names, name)
		}
		slices.Sort(names)
		canonical := Canonical(r, EncodeQuery(r.URL.Query()), names, Hash([]byte(v.body)))
		if got := fmt.Sprintf("%x", Sign(Key(secret, scope), Algorithm, at, scope, Hash([]byte(canonical)))); got != v.want {
			t.Errorf("%s %s?%s: signed %s, want %s, over\n%s", v.method, v.path, v.query, got, v.want, canonical)
		}
	}
}

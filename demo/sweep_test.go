package demo

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/bucket/serve"
)

// A demo that is not kept leaves nothing in a bucket of somebody else's, and touches nothing of
// what was there.
func TestDemoLeavesNothingInABucketThatIsNotItsOwn(t *testing.T) {
	server, err := serve.Start(t.Context(), serve.Config{Dir: t.TempDir(), Secret: "root-secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client := bucket.NewClient(bucket.S3Options{})
	defer client.Close()
	at, _, err := server.Make("models")
	if err != nil {
		t.Fatal(err)
	}
	store := func(under string) bucket.Store {
		opened, err := client.Open(at.Under(under))
		if err != nil {
			t.Fatal(err)
		}
		return opened
	}
	count := func(under string) int {
		list, err := store(under).List(t.Context(), "", "", 100)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	for _, kept := range []bool{true, false} {
		d := &directory{path: t.TempDir(), kept: kept, unlock: func() {}}
		d.set.Exchange, d.set.Clients = Buckets, 3 // of which the last one was never set up
		for i := range 2 {
			if err := os.Mkdir(d.file(clientName(i)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(d.file(clientName(i), bucketWrite), []byte(at.Under("demo/"+clientName(i)).URL()+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, under := range []string{"demo/" + clientName(0), "demo/" + clientName(1), "mine"} {
			for k := range 3 {
				if err := store(under).Put(t.Context(), fmt.Sprintf("a/%d", k), bytes.NewReader([]byte("object")), 6, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := d.close(); err != nil {
			t.Error(err)
		}
		want := 0
		if kept {
			want = 6
		}
		if of, others := count("demo"), count("mine"); of != want || others != 3 {
			t.Errorf("kept %v: %d objects of the demo are left, want %d, and %d of 3 others", kept, of, want, others)
		}
	}
}

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/bucket/serve"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/checkpoint/depot"
)

// startBuckets starts an S3 server with a bucket, and returns its location to write and to read.
func startBuckets(t *testing.T) (own, public bucket.Location, client *bucket.Client) {
	t.Helper()
	s, err := serve.Start(t.Context(), serve.Config{Dir: t.TempDir(), Secret: "root-secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	client = bucket.NewClient(bucket.S3Options{})
	t.Cleanup(client.Close)
	own, public, err = s.Make("models")
	if err != nil {
		t.Fatal(err)
	}
	return own, public, client
}

// withSecrets adds credentials for S3 to an environment.
func withSecrets(env func(string) string, l bucket.Location) func(string) string {
	return func(name string) string {
		switch name {
		case "ENTRAIN_S3_ACCESS_KEY":
			return string(l.AccessKey)
		case "ENTRAIN_S3_SECRET_KEY":
			return string(l.SecretKey)
		}
		return env(name)
	}
}

// bare returns a location without its credentials, as users type it when these are in the environment.
func bare(l bucket.Location) string {
	l.AccessKey, l.SecretKey = "", ""
	return l.URL()
}

// Nothing of a run lies on a member's disk but its state: data and the first model come from S3, and checkpoints go there; the next run goes on from
// them.
func TestARunLivesInBuckets(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.console.env = startReplica(t)
	own, public, client := startBuckets(t)
	imported, _ := importForeign(t, s)
	corpus := foreignData(t, s, imported)

	s.console.env = withSecrets(s.console.env, own)
	if out := s.ok("data", "publish", corpus, bare(own.Under("corpus"))); strings.TrimSpace(out) != mustManifest(t, corpus) {
		t.Errorf("the upload of the data prints %q", out)
	}
	saved, err := checkpoint.OpenLocal(os.DirFS(imported))
	if err != nil {
		t.Fatal(err)
	}
	first, err := depot.Open(own.Under("first").URL(), depot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if err := first.Upload(t.Context(), imported, saved.Manifest, 0); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(fmt.Sprintf(continuedRun, "away", 8, public.Under("corpus").URL(), 1, 0), "[data]", fmt.Sprintf("[data]\nmanifest = %q", mustManifest(t, corpus)), 1)
	hash := create(t, s, text, bare(own.Under("first")))
	state := filepath.Join(t.TempDir(), "state")
	results := bare(own.Under("results"))
	m := <-takePart(t.Context(), t, s.console.env, "away", "--key", state+".key", "--state", state, "--from", bare(own.Under("first")), "--upload", results, "--checkpoints", "1")
	if m.err != nil {
		t.Fatal(m.err)
	}
	if ev, ok := m.first("loaded"); !ok || ev.Params != hash {
		t.Errorf("the member began with %+v, the run with %s", ev, hash)
	}
	end, ok := m.first("finished")
	if !ok || !slices.ContainsFunc(notes(m), func(text string) bool { return strings.Contains(text, "the checkpoint of step 8 is at s3://(hidden)@") }) {
		t.Errorf("it finished: %t, and told %q", ok, notes(m))
	}
	for _, ev := range m.events {
		if strings.Contains(fmt.Sprint(ev), string(own.SecretKey)) {
			t.Errorf("an event shows the secret: %v", ev)
		}
	}
	fetched := filepath.Join(t.TempDir(), "fetched")
	last, err := depot.Open(public.Under("results").URL(), depot.Options{S3: client.Open})
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	got, err := last.Fetch(t.Context(), fetched, func(checkpoint.Manifest) error { return nil })
	if err != nil || got.Params.String() != end.Params || got.Step != 8 {
		t.Errorf("in the bucket is step %d with %s, %v, want %s", got.Step, got.Params, err, end.Params)
	}
	// The next run goes on from what any static host has of it.
	static := httptest.NewServer(http.FileServerFS(os.DirFS(fetched)))
	defer static.Close()
	text = fmt.Sprintf(continuedRun, "next", 2, corpus, 1, 0)
	if hash := create(t, s, text, static.URL); hash != end.Params {
		t.Errorf("the next run begins with %s, want %s", hash, end.Params)
	}
}

func notes(m taking) (texts []string) {
	for _, ev := range m.events {
		if ev.Kind == "note" {
			texts = append(texts, ev.Text)
		}
	}
	return texts
}

func TestWrongAddressesOfCheckpointsAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.console.env = startReplica(t)
	imported, _ := importForeign(t, s)
	corpus := foreignData(t, s, imported)
	create(t, s, fmt.Sprintf(continuedRun, "refused", 2, corpus, 1, 0), imported)
	key := filepath.Join(t.TempDir(), "key")
	other := httptest.NewServer(http.FileServerFS(os.DirFS(writeCheckpoint(t))))
	defer other.Close()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--upload", "./dir"}, "--upload: address of checkpoints"},
		{[]string{"--upload", "s3://key:TOPSECRET@host/AB"}, "3 to 63"},
		{[]string{"--from", other.URL}, "but the run continues from"},
		{[]string{"--from", other.URL + "/none"}, "404"},
	} {
		_, _, err := s.run(append([]string{"join", "refused", "--json", "--key", key, "--state", t.TempDir()}, c.args...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "TOPSECRET") {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
}

// TestAnybodyStartsARunFromAnAddress has a member that was given nothing but the run's name.
func TestAnybodyStartsARunFromAnAddress(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.console.env = startReplica(t)
	imported, _ := importForeign(t, s)
	corpus := foreignData(t, s, imported)
	public := httptest.NewServer(http.FileServerFS(os.DirFS(imported)))
	defer public.Close()
	first := create(t, s, fmt.Sprintf(continuedRun, "public", 2, corpus, 1, 0), public.URL)
	dir := t.TempDir()
	m := <-takePart(t.Context(), t, s.console.env, "public", "--key", filepath.Join(dir, "key"), "--state", dir)
	if m.err != nil {
		t.Fatal(m.err)
	}
	if ev, ok := m.first("loaded"); !ok || ev.Params != first {
		t.Errorf("it began with %+v, want the parameters %s", ev, first)
	}
}

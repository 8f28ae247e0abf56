package data

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

func TestHandlerOffersTheSetAndNothingElse(t *testing.T) {
	dir, m := bigSet(t)
	for _, name := range []string{"secret", ".entrain-prepare"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	url := serve(t, Handler(dir, m))
	sameSequences(t, mustOpenURL(t, m, quick(), url), mustOpen(t, dir, m, Options{SequenceTokens: 1000}))
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/" + manifestFile, 200},
		{"HEAD", "/train-00000.bin", 200},
		{"GET", "/secret", 404},
		{"GET", "/.entrain-prepare", 404},
		{"GET", "/", 404},
		{"GET", "/../" + filepath.Base(dir) + "/secret", 404},
		{"PUT", "/" + manifestFile, 405},
		{"DELETE", "/train-00000.bin", 405},
	} {
		request, err := http.NewRequestWithContext(t.Context(), c.method, url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.URL.Opaque = c.path // as it is, without cleaning
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != c.want {
			t.Errorf("%s %s: got %s, want %d", c.method, c.path, response.Status, c.want)
		}
	}
	if err := os.Remove(filepath.Join(dir, leavesFile)); err != nil {
		t.Fatal(err)
	}
	sameSequences(t, mustOpenURL(t, m, quick(), url), mustOpen(t, dir, m, Options{SequenceTokens: 1000}))
	http.DefaultClient.CloseIdleConnections()
}

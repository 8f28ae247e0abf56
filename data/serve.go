package data

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/entrain-network/entrain/httpserve"
)

// Handler serves the data set in dir, whose manifest is m, to OpenURL. It serves the files of the
// set by name, whole or in ranges, and nothing else in the directory. Any static host works as
// well.
func Handler(dir string, m Manifest) http.Handler {
	tags := map[string]string{manifestFile: m.Hash().String()}
	sets, err := componentsOf(dir, m)
	for below, m := range sets {
		tags[below+manifestFile], tags[below+tokenizerFile], tags[below+leavesFile] = m.Hash().String(), m.Tokenizer.Hash.String(), "leaves-"+m.Hash().String()
		for _, s := range append(append([]Shard{}, m.Shards...), m.HeldOut...) {
			tags[below+s.File] = s.Root.String()
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err != nil {
			http.Error(w, "the data set cannot be read", http.StatusInternalServerError)
			return
		}
		name := strings.TrimPrefix(r.URL.Path, "/")
		tag, ok := tags[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		f, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			http.NotFound(w, r) // sets of earlier versions have fewer files
			return
		}
		defer f.Close()
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("ETag", `"`+tag+`"`)
		http.ServeContent(w, r, "", time.Time{}, f)
	})
}

// Serve serves the data set in dir, whose manifest is m, over HTTP until ctx ends, with at most
// upload bytes a second to all together; 0 means no limit.
func Serve(ctx context.Context, l net.Listener, dir string, m Manifest, upload uint64) error {
	return httpserve.Run(ctx, httpserve.Paced(l, upload), &http.Server{Handler: Handler(dir, m)}, 5*time.Second)
}

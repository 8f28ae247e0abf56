package model

import (
	"net/http"
	"net/http/httptest"

	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/eval"
)

// datasetHub serves testdata/hub, whose tables pyarrow wrote, as huggingface.co serves data sets. It
// counts the files that were asked for.
func datasetHub(t *testing.T) (url string, files *int) {
	files = new(int)
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, "/api/datasets/"); ok {
			set, ok := strings.CutSuffix(rest, "/revision/main")
			found, err := filepath.Glob(filepath.Join("testdata/hub", set, "*/*.parquet"))
			if !ok || err != nil || len(found) == 0 {
				http.NotFound(w, r)
				return
			}
			list := []string{`{"rfilename":"README.md"}`, `{"rfilename":"../test-evil.parquet"}`}
			for _, name := range found {
				rest, _ := filepath.Rel(filepath.Join("testdata/hub", set), name)
				list = append(list, `{"rfilename":"`+filepath.ToSlash(rest)+`"}`)
			}
			_, _ = w.Write([]byte(`{"siblings":[` + strings.Join(list, ",") + `]}`))
			return
		}
		*files++
		http.ServeFile(w, r, filepath.Join("testdata/hub", strings.Replace(strings.TrimPrefix(r.URL.Path, "/datasets/"), "/resolve/main", "", 1)))
	}))
	t.Cleanup(hub.Close)
	return hub.URL, files
}

func TestTasksComeFromTheHubByName(t *testing.T) {
	url, files := datasetHub(t)
	f := Fetcher{
		Cache: Cache{Dir: filepath.Join(t.TempDir(), "checkpoints")}, Say: func(string, ...any) {},
		Getenv: func(name string) string { return map[string]string{"HF_ENDPOINT": url}[name] },
	}
	for range 2 { // the second time from the cache
		named, err := f.TaskFiles(t.Context(), []string{"hellaswag", "arc_easy:3", "piqa=x.jsonl"})
		if err != nil || named[2] != "piqa=x.jsonl" {
			t.Fatal(named, err)
		}
		got, err := ReadTasks(named[:2], 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"hellaswag=../eval/testdata/hellaswag.jsonl", "arc_easy:3=../eval/testdata/arc_easy.jsonl,../eval/testdata/arc_easy.examples.jsonl"} {
			local, err := ReadTasks([]string{want}, 0)
			if err != nil || !reflect.DeepEqual(got[i], local[0]) {
				t.Errorf("%s: %+v, want %+v; %v", named[i], got[i], local[0], err)
			}
		}
	}
	if *files != 3 {
		t.Errorf("the hub was asked for %d files, want 3", *files)
	}
	for spec, want := range map[string]string{"chess": "choose from arc_challenge", "sciq": "/api/datasets/allenai/sciq/revision/main", "hellaswag:2": `no files of split "train"`} {
		if _, err := f.TaskFiles(t.Context(), []string{spec}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", spec, err, want)
		}
	}
	for range 2 {
		dir, err := f.Dataset(t.Context(), "hf://allenai/ai2_arc", "train")
		found, _ := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(found) != 1 || filepath.Base(found[0]) != "ARC-Easy_train-00000-of-00001.parquet" {
			t.Errorf("%s has %v, %v", dir, found, err)
		}
	}
	if dir, err := f.Dataset(t.Context(), "book.txt", "train"); dir != "book.txt" || err != nil {
		t.Errorf("%s, %v", dir, err)
	}
	if *files != 4 {
		t.Errorf("the hub was asked for %d files, want 4", *files)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(f.Cache.Dir), "tasks", "*", "*.fetched"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	for _, name := range eval.Tasks() {
		if hubTasks[name].set == "" {
			t.Errorf("%s has no data set", name)
		}
	}
}

func TestTasksWithExamplesAreReadFromFiles(t *testing.T) {
	for spec, want := range map[string]string{
		"arc_easy": "want NAME=FILE", "arc_easy:2=../eval/testdata/arc_easy.jsonl": "a file of examples", "arc_easy:x=a,b": "no such file",
		"arc_easy:9=../eval/testdata/arc_easy.jsonl,../eval/testdata/arc_easy.jsonl": "too few",
	} {
		if _, err := ReadTasks([]string{spec}, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", spec, err, want)
		}
	}
}

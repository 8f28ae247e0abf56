package depot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// FetchDataset downloads files of a data set on a hub, hf://owner/name, into the directory dir,
// which must not exist. choose picks them from the names of all; a slash in a name becomes an
// underscore. Nothing vouches for their bytes but the server. It leaves nothing of an incomplete
// set in dir.
func FetchDataset(ctx context.Context, address, dir string, o Options, choose func(names []string) ([]string, error)) error {
	o.fill()
	defer o.Client.CloseIdleConnections()
	err := fetchDataset(ctx, address, dir, o, choose)
	if err != nil {
		return fmt.Errorf("fetch data set from %s: %w", address, err)
	}
	return nil
}

func fetchDataset(ctx context.Context, address, dir string, o Options, choose func(names []string) ([]string, error)) error {
	h, err := parseHub(address, o)
	if err != nil {
		return err
	}
	var set struct {
		Files []struct {
			Name string `json:"rfilename"`
		} `json:"siblings"`
	}
	if err := h.api(ctx, http.MethodGet, "/api/datasets/"+h.model+"/revision/"+h.revision, "", nil, &set); err != nil {
		return err
	}
	var names []string
	for _, f := range set.Files {
		if plainPath(f.Name) {
			names = append(names, f.Name)
		}
	}
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		return errors.New("it has no files to read")
	}
	from := &web{base: h.base + "/datasets/" + h.model + "/resolve/" + h.revision + "/", token: h.token, shown: h.String(), options: h.options}
	defer from.close()
	f := &fetching{from: from, options: o}
	return f.writeDir(ctx, "datasets "+h.String(), dir, func(into *partialDir) error {
		for _, name := range chosen {
			if err := f.file(ctx, into, name, strings.ReplaceAll(name, "/", "_"), nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// plainPath reports whether each part of a path needs no escaping.
func plainPath(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if !plain(part) {
			return false
		}
	}
	return true
}

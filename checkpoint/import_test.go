package checkpoint

import (
	"strings"
	"testing"
	"testing/fstest"
)

// A directory that a stranger made names only files in it, and is refused or opened without reading weights.
func FuzzImport(f *testing.F) {
	config := `{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":8,"intermediate_size":16,` +
		`"num_attention_heads":2,"num_hidden_layers":1,"vocab_size":16,"max_position_embeddings":8,"rms_norm_eps":1e-5,"hidden_act":"silu"}`
	f.Add([]byte(config), []byte(`{"weight_map":{"a":"model-00001-of-00001.safetensors"}}`))
	f.Add([]byte(config), []byte(`{"weight_map":{"a":"../escape.safetensors"}}`))
	f.Add([]byte(config), []byte(`{"weight_map":{}}`))
	f.Add([]byte(config), []byte(nil))
	f.Add([]byte(`{`), []byte(`[`))
	f.Fuzz(func(t *testing.T, config, index []byte) {
		dir := fstest.MapFS{
			ConfigFile:                         {Data: config},
			WeightsFile:                        {Data: []byte("weights")},
			"model-00001-of-00001.safetensors": {Data: []byte("weights")},
		}
		if len(index) > 0 {
			dir[IndexFile] = &fstest.MapFile{Data: index}
		}
		s, err := Import(dir)
		if err != nil {
			return
		}
		if len(s.weights) == 0 || len(s.weights) > filesMax {
			t.Errorf("%d files of weights", len(s.weights))
		}
		for _, w := range s.weights {
			if strings.ContainsAny(w.File, `/\`) || dir[w.File] == nil {
				t.Errorf("weights in %q", w.File)
			}
		}
	})
}

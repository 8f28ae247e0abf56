package serve

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/model"
)

// A page's prompt is answered as the server answers, the same again for the same seed.
func TestAPromptIsAnswered(t *testing.T) {
	dir, asked := write(t, "a", tiny), &Prompted{}
	p := model.Prompt{Text: "The rays", Tokens: 30, Temperature: 1, Seed: "s"}
	var texts [3]strings.Builder
	for i := range texts {
		if p.Seed = "s"; i == 2 {
			p.Seed = "t"
		}
		if err := asked.Generate(t.Context(), dir, p, &texts[i]); err != nil {
			t.Fatal(err)
		}
	}
	if texts[0].String() != texts[1].String() || texts[0].String() == texts[2].String() || texts[0].Len() == 0 {
		t.Errorf("answers are %q, %q and, of another seed, %q", &texts[0], &texts[1], &texts[2])
	}
	p.Text = strings.Repeat("a", 64)
	if err := asked.Generate(t.Context(), dir, p, &texts[0]); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("a prompt as long as the context: %v", err)
	}
	if err := asked.Generate(t.Context(), t.TempDir(), p, &texts[0]); err == nil || !strings.Contains(err.Error(), "not a checkpoint of entrain") || asked.dir != dir {
		t.Errorf("of an empty directory: %v", err)
	}
	asked.forget()
}

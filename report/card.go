package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/view"
)

// card writes README.md: a model card as model hubs show it beside a model's files. It tells what
// the model is, how to use it and how to check it. Texts of the owner and of the model cannot
// become markup.
func card(r view.Run, s *spec.Spec, now time.Time) []byte {
	var b bytes.Buffer
	add := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	about := &spec.About{}
	if s != nil && s.About != nil {
		about = s.About
	}
	add("---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags: [entrain]\n")
	if about.License != "" {
		name, _ := json.Marshal(strings.ToLower(about.License)) // YAML reads JSON's strings
		add("license: %s\n", name)
	}
	add("---\n\n# %s\n\n", r.Name)
	if about.Description != "" {
		add("%s\n\n", plain(about.Description))
	}
	for _, l := range about.Links {
		add("- <%s>\n", strings.NewReplacer("<", "%3C", ">", "%3E").Replace(l))
	}
	add("\nMany machines trained this model together with [entrain](https://github.com/entrain-network/entrain); %d took part. "+
		"As of %s it is at step %s of %s, after %s tokens.\n\n", len(r.Members), now.UTC().Format("2 January 2006"),
		view.Thousands(uint64(r.Step)), view.Thousands(uint64(r.Steps)), view.Thousands(r.Tokens))
	add("## Use it\n\nA checkpoint is a directory in the layout of Hugging Face.\n\n```python\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\n" +
		"model = AutoModelForCausalLM.from_pretrained(\"CHECKPOINT\")\ntokenizer = AutoTokenizer.from_pretrained(\"CHECKPOINT\")\n```\n\n" +
		"```sh\nentrain model generate CHECKPOINT --prompt TEXT\nentrain model serve CHECKPOINT                  # OpenAI's API\nentrain model export CHECKPOINT -o model.gguf   # for llama.cpp\n```\n\n")
	cardTraining(add, r, s)
	if len(r.Tasks) > 0 || last(r.HeldOut) != 0 {
		add("## Evaluation\n\n| | value | step |\n|---|---|---|\n")
		row := func(name string, c view.Curve) {
			if v, ok := c.Last(); ok {
				add("| %s | %.4f | %s |\n", name, v, view.Thousands(uint64(c[len(c)-1].To)))
			}
		}
		row("held-out loss, nats a token", r.HeldOut)
		for _, t := range r.Tasks {
			row(fmt.Sprintf("%s, accuracy on %d items", plain(t.Name), t.Items), t.Acc)
			row(plain(t.Name)+", normalized by length", t.Norm)
		}
		add("\nTasks are scored as lm-evaluation-harness does, without examples in the prompt.\n\n")
	}
	if list := samples(r); len(list) > 0 {
		newest := list[len(list)-1]
		add("## Samples\n\nAfter step %s the model continues:\n\n", view.Thousands(uint64(newest.Step)))
		for _, t := range newest.Texts {
			add("    %s\n\n", strings.Join(strings.Split(t.Prompt+" | "+t.Text, "\n"), "\n    "))
		}
	}
	add("## Check it\n\nThe run agreed on the parameters `%s`. `entrain model generate CHECKPOINT --hash %s` refuses any others.", r.Params, r.Params)
	if t := r.Trust; t != nil && t.Drawn > 0 {
		add(" Of the results, %s were computed again by others: %s passed. Convicted of cheating: %d.", view.Thousands(uint64(t.Drawn)), view.Thousands(uint64(t.Passed)), t.Convicted)
	}
	add("\n")
	return b.Bytes()
}

// cardTraining writes how the model was trained.
func cardTraining(add func(format string, args ...any), r view.Run, s *spec.Spec) {
	if s == nil {
		return
	}
	add("## Training\n\n| | |\n|---|---|\n")
	if m, err := s.Llama(); err == nil {
		add("| model | %s, %s parameters, context of %d tokens |\n", s.Model.Name(), view.Thousands(uint64(m.Layout().Len())), m.Context)
	}
	add("| data | manifest `%s` |\n| tokens | %s, in sequences of %d |\n", s.Data.Manifest, view.Thousands(r.Tokens), s.Data.Sequence)
	add("| optimizer | %s, learning rate %g to %g (%s) |\n", s.Optimizer.Kind().Name, s.LearningRate.Base, s.LearningRate.Final, s.LearningRate.Schedule)
	batch := fmt.Sprint(s.Batch.Start)
	if s.Batch.End != s.Batch.Start {
		batch += fmt.Sprintf(" to %d", s.Batch.End)
	}
	add("| batch | %s sequences |\n| run | `%s` |\n\n", batch, r.ID)
}

// plain returns text that Markdown shows as it is, line by line.
func plain(s string) string {
	var b strings.Builder
	for line := range strings.Lines(html.EscapeString(s)) {
		for i, c := range strings.TrimSpace(line) {
			if strings.ContainsRune("\\`*_{}[]()#+!|~", c) || i == 0 && strings.ContainsRune("-=", c) {
				b.WriteByte('\\')
			}
			b.WriteRune(c)
		}
		if strings.HasSuffix(line, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

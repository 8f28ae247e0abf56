package spec

import (
	"reflect"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/codec/all"
)

func TestARunTellsWhatItIsFor(t *testing.T) {
	const about = "\n[about]\ndescription = \"Old books.\\nFor all.\"\nlicense = \"Apache-2.0\"\nlinks = [\"https://example.org/a\"]\n"
	s, err := Parse([]byte(small+about), all.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	want := &About{Description: "Old books.\nFor all.", License: "Apache-2.0", Links: []string{"https://example.org/a"}}
	if !reflect.DeepEqual(s.About, want) {
		t.Errorf("got %+v", s.About)
	}
	text, err := s.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Parse(text, all.Kinds()); err != nil || !reflect.DeepEqual(again.About, want) {
		t.Errorf("written and read again: %+v, %v", again.About, err)
	}
	without, err := Parse([]byte(small), all.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := without.Append(nil); err != nil || strings.Contains(string(text), "about") {
		t.Errorf("a specification without the table has it in its bytes: %s, %v", text, err)
	}
}

func TestWhatARunTellsIsHarmless(t *testing.T) {
	for _, c := range []struct{ text, fault string }{
		{`description = "` + strings.Repeat("a", descriptionMax+1) + `"`, "about.description"},
		{`description = "\u001b[2J"`, "about.description"},
		{`description = "\u202eabc"`, "about.description"},
		{`license = "a\nb"`, "about.license"},
		{`links = ["javascript:alert(1)"]`, "about.links[0]"},
		{`links = ["https://a.example", "https://u:p@a.example"]`, "about.links[1]"},
		{`links = ["https://"]`, "about.links[0]"},
		{`links = ["https://a.example/\u0000"]`, "about.links[0]"},
		{`links = ["https://a", "https://a", "https://a", "https://a", "https://a", "https://a", "https://a", "https://a", "https://a"]`, "about.links: there are 9"},
		{`licence = "MIT"`, "license"},
	} {
		if _, err := Parse([]byte(small+"\n[about]\n"+c.text+"\n"), all.Kinds()); err == nil || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%.60s: got %v, want a fault about %s", c.text, err, c.fault)
		}
	}
}

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// The files that are checked in are those that the schema gives.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	files, err := generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if have, err := os.ReadFile("../../" + name); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not what schema.txt gives (%v); run go generate in coordinator", name, err)
		}
	}
}

func TestSchemaFaults(t *testing.T) {
	const head = "config\nName string 8 .. a name\nrecord Header h 64 the header\n"
	for _, c := range []struct{ name, line, want string }{
		{"good", "0 u32 Count how many", ""},
		{"overlap", "4 u64 Time when", "not at a multiple"},
		{"across another", "6 u32 Count how many", "not at a multiple"},
		{"over the name", "24 u64 Time when", "overlaps"},
		{"behind the end", "56 u64*2 Time when", "take 72 bytes of 64"},
		{"unknown type", "0 u33 Count how many", "unknown type"},
		{"no offset", "x u32 Count how many", "line 4"},
		{"no meaning", "0 u32 Count", "a field is"},
		{"short record", "record Member", "a record is"},
	} {
		_, err := parse(head + c.line + "\n")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

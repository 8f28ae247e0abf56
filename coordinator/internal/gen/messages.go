package main

import (
	"fmt"
	"strings"
)

// partTypes are how a field of a message is declared, appended and read. %s stands for its name,
// %m for the bound of its length.
var partTypes = map[string][3]string{
	"u8":     {"uint8", "wire.AppendU8(dst, m.%s)", "r.U8()"},
	"u32":    {"uint32", "wire.AppendU32(dst, m.%s)", "r.U32()"},
	"u64":    {"uint64", "wire.AppendU64(dst, m.%s)", "r.U64()"},
	"bool":   {"bool", "wire.AppendBool(dst, m.%s)", "r.Bool()"},
	"hash":   {"wire.Hash", "wire.AppendHash(dst, m.%s)", "r.Hash()"},
	"key":    {"key.Public", "append(dst, m.%s[:]...)", "key.Public(r.Hash())"},
	"signed": {"dispute.Signed", "m.%s.Append(dst)", "dispute.ReadSigned(r)"},
	"bytes":  {"[]byte", "wire.AppendVar(dst, m.%s)", "r.Var(%m)"},
	"hashes": {"[]wire.Hash", "appendHashes(dst, m.%s)", "readHashes(r, %m)"},
	"score":  {"[]score.Score", "appendScores(dst, m.%s)", "readScores(r, %m)"},
	"nodes":  {"[bisect.Fan]wire.Hash", "appendNodes(dst, &m.%s)", "readNodes(r)"},
}

// partType returns the three of a field, and how the manual names its type.
func partType(f field) (t [3]string, manual string) {
	typ, most, _ := strings.Cut(f.typ, "<=")
	base, name, enum := strings.Cut(typ, ":")
	switch {
	case base == "hash" && most != "":
		base, manual = "hashes", "Hashes"
	case base == "hash*16":
		base, manual = "nodes", "16 Hash"
	case base == "bytes":
		manual = "Bytes"
	case base == "score":
		manual = "Scores"
	case base == "signed":
		manual = "Signed"
	default:
		manual = strings.ToUpper(base[:1]) + base[1:]
	}
	t = partTypes[base]
	if enum {
		t = [3]string{name, strings.Replace(t[1], "m.%s", t[0]+"(m.%s)", 1), name + "(" + t[2] + ")"}
	}
	t[1] = strings.ReplaceAll(t[1], "%s", f.name)
	t[2] = strings.ReplaceAll(t[2], "%m", most)
	return t, manual
}

// messageCode returns the code of the messages.
func (s schema) messageCode() string {
	var types, methods, read strings.Builder
	for _, m := range s.messages {
		types.WriteString("\n")
		for _, line := range m.doc {
			types.WriteString("// " + line + "\n")
		}
		fmt.Fprintf(&types, "type %s struct {", m.name)
		if len(m.fields) > 0 {
			types.WriteString("\n")
		}
		var appends, reads []string
		for _, f := range m.fields {
			t, _ := partType(f)
			types.WriteString(wrap(sentence(f.doc), "// ") + f.name + " " + t[0] + "\n")
			appends = append(appends, t[1])
			reads = append(reads, f.name+": "+t[2])
		}
		types.WriteString("}\n")
		fmt.Fprintf(&methods, "\nfunc (%s) name() string { return %q }\n", m.name, m.noun)
		kind := fmt.Sprintf("wire.AppendU8(dst, %d)", m.kind)
		switch n := len(appends); n {
		case 0:
			fmt.Fprintf(&methods, "func (%s) append(dst []byte) []byte { return %s }\n", m.name, kind)
		case 1:
			fmt.Fprintf(&methods, "func (m %s) append(dst []byte) []byte { return %s }\n", m.name, strings.Replace(appends[0], "dst", kind, 1))
		default:
			appends[0] = strings.Replace(appends[0], "dst", kind, 1)
			fmt.Fprintf(&methods, "func (m %s) append(dst []byte) []byte {\ndst = %s\nreturn %s\n}\n", m.name,
				strings.Join(appends[:n-1], "\ndst = "), appends[n-1])
		}
		fields := strings.Join(reads, ", ")
		if len(fields) > width-30 {
			fields = "\n" + strings.Join(reads, ",\n") + ",\n"
		}
		fmt.Fprintf(&read, "case %d:\nreturn %s{%s}\n", m.kind, m.name, fields)
	}
	return notice + "package coordinator\n\nimport (\n\"github.com/entrain-network/entrain/bisect\"\n" +
		"\"github.com/entrain-network/entrain/coordinator/dispute\"\n\"github.com/entrain-network/entrain/coordinator/score\"\n" +
		"\"github.com/entrain-network/entrain/key\"\n\"github.com/entrain-network/entrain/wire\"\n)\n" + types.String() + methods.String() +
		"\n// readMessage reads the fields of a message; nil if the kind is unknown.\n" +
		"func readMessage(kind uint8, r *wire.Reader) Message {\nswitch kind {\n" + read.String() + "}\nreturn nil\n}\n" +
		"\n// takesValue reports whether tokens may be attached to a message.\n" + s.flagged("takesValue", func(m message) bool { return m.value }) +
		"\n// paysOut reports whether a message may pay tokens out of the escrow.\n" + s.flagged("paysOut", func(m message) bool { return m.pays }) +
		fmt.Sprintf("\n// kindsEnd is the first kind that no message has.\nconst kindsEnd = %d\n", len(s.messages))
}

func (s schema) flagged(name string, has func(message) bool) string {
	var list []string
	for _, m := range s.messages {
		if has(m) {
			list = append(list, m.name)
		}
	}
	return "func " + name + "(m Message) bool {\nswitch m.(type) {\ncase " + strings.Join(list, ", ") + ":\nreturn true\n}\nreturn false\n}\n"
}

// kinds returns the table of messages of the package comment.
func (s schema) kinds() string {
	var b strings.Builder
	b.WriteString("// A message is its kind in one byte, then its fields. Bytes, Hashes and Scores are a U32 length and\n" +
		"// their elements; a score is U32 member and U16 score, in two's complement. Signed is a commitment\n" +
		"// and its signature (Signed.Append).\n//\n")
	for _, m := range s.messages {
		var parts []string
		for _, f := range m.fields {
			_, manual := partType(f)
			parts = append(parts, manual+" "+f.name)
		}
		line := fmt.Sprintf("//\t%2d %-18s", m.kind, m.name)
		for i, part := range parts {
			if i < len(parts)-1 {
				part += ","
			}
			if len(line)+len(part) >= width-4 {
				b.WriteString(line + "\n")
				line = "//\t" + strings.Repeat(" ", 21)
			}
			line += " " + part
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString("//\n")
	return b.String()
}

// errorCode returns the code of the errors.
func (s schema) errorCode() string {
	var consts, texts strings.Builder
	for _, e := range s.errors {
		fmt.Fprintf(&consts, "%s Error = %d\n", e.name, e.number)
		fmt.Fprintf(&texts, "%s: %q,\n", e.name, e.text)
	}
	return notice + "package record\n\n// Error is the reason why a message, a configuration or a buffer was refused. The zero value is OK\n" +
		"// and never becomes a Go error.\ntype Error uint8\n\n// The errors. Their numbers are stable, since the receipts of hosts carry them.\nconst (\n" +
		"OK Error = 0 // no error\n\n" + consts.String() + fmt.Sprintf("ErrorsEnd Error = %d // first unused number\n)\n", len(s.errors)+1) +
		"\n// OrNil returns e as a Go error, and nil for OK.\nfunc (e Error) OrNil() error {\nif e == OK {\nreturn nil\n}\nreturn e\n}\n" +
		"\n// Error returns what was refused and what to do about it.\nfunc (e Error) Error() string {\n" +
		"texts := [ErrorsEnd]string{\nOK: \"ok\",\n" + texts.String() + "}\nif e >= ErrorsEnd {\nreturn \"unknown error\"\n}\nreturn texts[e]\n}\n"
}

// errorNames returns the names of the errors in the coordinator.
func (s schema) errorNames() string {
	var b strings.Builder
	b.WriteString(notice + "package coordinator\n\nimport \"github.com/entrain-network/entrain/coordinator/internal/record\"\n\n" +
		"// Error is the reason why a message, a configuration or a buffer was refused. The zero value is OK\n" +
		"// and never becomes a Go error.\ntype Error = record.Error\n\n// The errors. Their texts say what was refused and what to do about it.\n" +
		"const (\nOK = record.OK\n")
	for _, e := range s.errors {
		fmt.Fprintf(&b, "%s = record.%s\n", e.name, e.name)
	}
	b.WriteString(")\n")
	return b.String()
}

package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/entrain-network/entrain/tokenizer"
)

// A Format turns conversations into the tokens that a model reads: by a template, and a tokenizer.
// What messages spell is ordinary text: only the template writes special tokens, so nobody ends a
// message from within it. It is safe for concurrent use.
type Format struct {
	template *Template
	words    tokenizer.Tokenizer
	end      string
}

// NewFormat reads a template.
func NewFormat(source string, words tokenizer.Tokenizer) (*Format, error) {
	t, err := Parse(source)
	if err != nil {
		return nil, err
	}
	f := &Format{template: t, words: words}
	// Some templates refuse so short a conversation: those have no end that is known.
	said := string(probe)
	if text, err := f.render([]any{message("user", "x"), message("assistant", said)}, nil, false, time.Time{}); err == nil {
		if i := strings.Index(text, said); i >= 0 {
			i += len(said)
			f.end = strings.TrimSpace(text[i:f.ended(text, i)])
		}
	}
	return f, nil
}

// probe stands for what an assistant says. Unicode keeps it free.
const probe = '\uFDD1'

// End returns the special token that ends what an assistant says, or "" if none does.
func (f *Format) End() string { return f.end }

// End returns the token at which programs stop what a model writes: the one that a template puts
// after what the assistant says, or else, as without a template (""), the one that ends a text.
func End(source string, words tokenizer.Tokenizer) uint32 {
	if source != "" {
		if f, err := NewFormat(source, words); err == nil {
			if ids, ok := tokenizer.EncodeGuarded(words, nil, f.end, 2); ok && len(ids) == 1 {
				return ids[0]
			}
		}
	}
	return words.End()
}

func message(role, content string) *Dict {
	d := &Dict{}
	d.set("role", role)
	d.set("content", content)
	return d
}

// Conversation is a conversation as JSON of OpenAI's API: messages of the roles system, developer,
// user, assistant and tool, each a text or a list of texts, and tools, which may be nil.
type Conversation struct {
	Messages json.RawMessage `json:"messages"`
	Tools    json.RawMessage `json:"tools,omitempty"`
}

// roles that a message may have. A role is written between special tokens, so it is not any text.
var roles = []string{"system", "developer", "user", "assistant", "tool"}

// try calls do with the messages and tools of a conversation as a template takes them. Most
// templates take the arguments of a call as values, where OpenAI's API has their JSON as a text;
// those of DeepSeek take the text. If do fails with values, try calls it with the text.
func (f *Format) try(c Conversation, do func(messages []any, tools any) error) error {
	messages, tools, text, err := f.values(c, true)
	if err != nil {
		return err
	}
	err = do(messages, tools)
	var raised Raised
	if err == nil || !text || errors.As(err, &raised) {
		return err
	}
	if messages, tools, _, fault := f.values(c, false); fault != nil || do(messages, tools) != nil {
		return err
	}
	return nil
}

// values returns the messages and tools of a conversation, with the arguments of calls parsed or
// not, and whether some are a text that can be.
func (f *Format) values(c Conversation, parse bool) (messages []any, tools any, text bool, err error) {
	plain := func(s string) string {
		return strings.ReplaceAll(tokenizer.Guarded(f.words, s), string(probe), "")
	}
	v, err := decodeJSON(c.Messages, plain)
	if err != nil {
		return nil, nil, false, fmt.Errorf("messages: %w", err)
	}
	messages, ok := v.([]any)
	if !ok || len(messages) == 0 {
		return nil, nil, false, errors.New("messages: want a list of at least one message")
	}
	for i, m := range messages {
		d, ok := m.(*Dict)
		if !ok {
			return nil, nil, false, fmt.Errorf("messages: message %d is %s, not an object", i, kindOf(m))
		}
		if role, _ := d.get("role"); !slices.Contains(roles, fmt.Sprint(role)) {
			return nil, nil, false, fmt.Errorf("messages: the role of message %d is none of %s", i, strings.Join(roles, ", "))
		}
		found, err := plainContent(d, parse)
		if text = text || found; err != nil {
			return nil, nil, false, fmt.Errorf("messages: message %d: %w", i, err)
		}
	}
	if len(c.Tools) > 0 {
		if tools, err = decodeJSON(c.Tools, plain); err != nil {
			return nil, nil, false, fmt.Errorf("tools: %w", err)
		}
		if _, ok := tools.([]any); !ok && tools != nil {
			return nil, nil, false, fmt.Errorf("tools: %s, not a list", kindOf(tools))
		}
	}
	return messages, tools, text, nil
}

// plainContent makes a list of texts one text, as templates expect it, and with parse the arguments
// of calls values. It reports whether there are arguments that can be.
func plainContent(d *Dict, parse bool) (text bool, err error) {
	content, _ := d.get("content")
	switch content := content.(type) {
	case nil, string:
	case []any:
		var texts []string
		for _, p := range content {
			part, _ := p.(*Dict)
			if part == nil {
				part = &Dict{}
			}
			text, ok := part.values["text"].(string)
			if !ok || part.values["type"] != "text" {
				return false, errors.New("its content has a part that is not text")
			}
			texts = append(texts, text)
		}
		d.set("content", strings.Join(texts, "\n"))
	default:
		return false, fmt.Errorf("its content is %s, not a text", kindOf(content))
	}
	calls, _ := d.values["tool_calls"].([]any)
	for _, c := range calls {
		call, _ := c.(*Dict)
		if call == nil {
			return false, errors.New("a call of a tool is not an object")
		}
		if f, ok := call.values["function"].(*Dict); ok {
			if arguments, ok := f.values["arguments"].(string); ok {
				v, err := decodeJSON([]byte(arguments), func(s string) string { return s })
				if text = text || err == nil; err == nil && parse {
					f.set("arguments", v)
				}
			}
		}
	}
	return text, nil
}

// names are the tokens that templates write by name, and the variable that each is in.
var names = []string{"bos_token", "eos_token", "unk_token", "pad_token"}

func (f *Format) render(messages []any, tools any, ask bool, now time.Time) (string, error) {
	return f.template.render(variables(messages, tools, ask), now)
}

// variables are what a template is given.
func variables(messages []any, tools any, ask bool) map[string]any {
	return map[string]any{"messages": messages, "tools": tools, "documents": nil, "add_generation_prompt": ask}
}

// ErrLong reports a conversation of more tokens than are wanted.
var ErrLong = errors.New("the conversation is too long")

// Prompt returns the tokens that ask for an assistant's next message, at most the given number, or
// ErrLong. now is the time that the template may write, if it is not zero.
func (f *Format) Prompt(c Conversation, now time.Time, most int) ([]uint32, error) {
	var text string
	err := f.try(c, func(messages []any, tools any) (err error) {
		text, err = f.render(messages, tools, true, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	ids, ok := tokenizer.EncodeGuarded(f.words, nil, text, most)
	if !ok {
		return nil, ErrLong
	}
	return ids, nil
}

// Lesson returns the tokens of a conversation, and of each whether the assistant says it: what the
// template writes in {% generation %}, or else what changes in the text when an assistant's message
// does, and the special token after that.
func (f *Format) Lesson(c Conversation) (ids []uint32, said []bool, err error) {
	err = f.try(c, func(messages []any, tools any) error {
		ids, said, err = f.lesson(messages, tools)
		return err
	})
	return ids, said, err
}

func (f *Format) lesson(messages []any, tools any) (ids []uint32, said []bool, err error) {
	r, err := f.template.execute(variables(messages, tools, false), time.Time{})
	if err != nil {
		return nil, nil, err
	}
	text, spans, work := r.out.String(), r.generated, lessonMax
	for i, m := range messages {
		if len(r.generated) > 0 || m.(*Dict).values["role"] != "assistant" {
			continue
		}
		other := slices.Clone(messages)
		other[i] = message("assistant", string(probe))
		changed, err := f.template.execute(variables(other, tools, false), time.Time{})
		if err != nil {
			return nil, nil, err
		}
		if work -= workMax - changed.work; work < 0 {
			return nil, nil, fmt.Errorf("chat template: with %d messages %w", len(messages), errWork)
		}
		if at, ok := difference(text, changed.out.String()); ok {
			at.to = f.ended(text, at.to)
			spans = append(spans, at)
		}
	}
	sort.Slice(spans, func(i, j int) bool { return spans[i].from < spans[j].from })
	ids, said = f.mark(text, spans)
	return ids, said, nil
}

// span is a part of a text, in bytes.
type span struct{ from, to int }

// difference returns the part of a that b has otherwise.
func difference(a, b string) (span, bool) {
	if a == b {
		return span{}, false
	}
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	for from > 0 && from < len(a) && !utf8.RuneStart(a[from]) {
		from--
	}
	n := 0
	for n < len(a)-from && n < len(b)-from && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	to := len(a) - n
	for to < len(a) && !utf8.RuneStart(a[to]) {
		to++
	}
	return span{from, to}, true
}

// ended returns where a message that ends at byte i of text ends with the special token that
// follows, if one does.
func (f *Format) ended(text string, i int) int {
	blank := len(text[i:]) - len(strings.TrimLeft(text[i:], " \n\t"))
	if n := tokenizer.SpecialAt(f.words, text[i+blank:]); n > 0 {
		return i + blank + n
	}
	return i
}

// mark returns the tokens of text, and whether each has a part in one of the spans.
func (f *Format) mark(text string, spans []span) (ids []uint32, said []bool) {
	ids, _ = tokenizer.EncodeGuarded(f.words, nil, text, math.MaxInt)
	said = make([]bool, len(ids))
	plain, where := unguarded(text, spans)
	if ends := f.ends(plain, ids); ends != nil {
		at := 0
		for i, end := range ends {
			for len(where) > 0 && where[0].to <= at {
				where = where[1:]
			}
			said[i] = len(where) > 0 && end > where[0].from
			at = end
		}
		return ids, said
	}
	// Where tokens do not spell the text, the parts are encoded one by one.
	ids, said = nil, nil
	add := func(part string, by bool) {
		ids, _ = tokenizer.EncodeGuarded(f.words, ids, part, math.MaxInt)
		for len(said) < len(ids) {
			said = append(said, by)
		}
	}
	at := 0
	for _, s := range spans {
		add(text[at:max(at, s.from)], false)
		add(text[max(at, s.from):max(at, s.to)], true)
		at = max(at, s.to)
	}
	add(text[at:], false)
	return ids, said
}

// ends returns where in text each of its tokens ends, or nil if they do not spell it. A token may
// begin with a space that the tokenizer put in front, and white space may be lost beside a special
// token.
func (f *Format) ends(text string, ids []uint32) []int {
	ends := make([]int, len(ids))
	var b []byte
	at := 0
	for i, id := range ids {
		b, _ = f.words.Decode(b[:0], []uint32{id})
		s := string(b)
		for rest := text[at:]; ; {
			if strings.HasPrefix(rest, s) {
				at = len(text) - len(rest) + len(s)
				break
			}
			if strings.HasPrefix(s, " ") && strings.HasPrefix(rest, s[1:]) {
				at = len(text) - len(rest) + len(s) - 1
				break
			}
			r, n := utf8.DecodeRuneInString(rest)
			if n == 0 || !unicode.IsSpace(r) {
				return nil
			}
			rest = rest[n:]
		}
		ends[i] = at
	}
	if strings.TrimSpace(text[at:]) != "" {
		return nil
	}
	return ends
}

// unguarded returns text without Guards, and the spans in it.
func unguarded(text string, spans []span) (string, []span) {
	place := func(i int) int {
		return i - strings.Count(text[:i], string(tokenizer.Guard))*utf8.RuneLen(tokenizer.Guard)
	}
	moved := make([]span, len(spans))
	for i, s := range spans {
		moved[i] = span{place(s.from), place(s.to)}
	}
	return strings.ReplaceAll(text, string(tokenizer.Guard), ""), moved
}

// Source returns the chat template of a model in Hugging Face's layout: template is its
// chat_template.jinja, or nil, and config its tokenizer_config.json, or nil. What the
// template returned begins with are the tokens that config names, so that it needs no other file.
// It is "" if the model has none.
func Source(template, config []byte) (string, error) {
	var c struct {
		Template json.RawMessage `json:"chat_template"`
	}
	values := make(map[string]json.RawMessage)
	if config != nil {
		if err := errors.Join(json.Unmarshal(config, &c), json.Unmarshal(config, &values)); err != nil {
			return "", fmt.Errorf("tokenizer_config.json: %w", err)
		}
	}
	source := string(template)
	if template == nil && json.Unmarshal(c.Template, &source) != nil {
		var several []struct{ Name, Template string }
		if err := json.Unmarshal(c.Template, &several); len(c.Template) > 0 && err != nil {
			return "", fmt.Errorf("tokenizer_config.json: chat_template: %w", err)
		}
		for _, t := range several {
			if t.Name == "default" {
				source = t.Template
			}
		}
	}
	if source == "" {
		return "", nil
	}
	head := ""
	for _, name := range names {
		set := "{% set " + name + " = "
		var token string
		if json.Unmarshal(values[name], &token) != nil {
			var added struct{ Content string }
			_ = json.Unmarshal(values[name], &added)
			token = added.Content
		}
		if token != "" && strings.Contains(source, name) && !strings.Contains(source, set) {
			// The newline belongs to the tag: what follows begins a line, as before.
			head += set + pythonString(token) + " %}\n"
		}
	}
	if len(head)+len(source) > sourceBytesMax {
		return "", fmt.Errorf("the chat template has more than %d bytes", sourceBytesMax)
	}
	return head + source, nil
}

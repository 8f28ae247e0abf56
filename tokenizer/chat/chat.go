// Package chat renders conversations as text, by the chat templates that come with tokenizers.
//
// A chat template is a program in Jinja, a language of Python, and comes from strangers. Template
// executes the part of Jinja that the templates of models use, as transformers configures it, with
// Python's meaning of values. It refuses by name what it does not know, and bounds what a template
// may do. It reads nothing but what it is given.
package chat

import (
	"fmt"
	"strings"
	"time"
)

const (
	sourceBytesMax = 128 << 10 // of a template; the largest known have 30 KB
	workMax        = 1 << 26   // units of work of one rendering
	lessonMax      = 1 << 30   // units of work to find what the assistant says in a conversation
	stepWork       = 32        // units of work of a step
	partWork       = 8         // units of work of a part of an expression
)

// A Template renders conversations. It is safe for concurrent use.
type Template struct{ body []statement }

// Parse reads a template.
func Parse(source string) (*Template, error) {
	if len(source) > sourceBytesMax {
		return nil, fmt.Errorf("chat template: it has more than %d bytes", sourceBytesMax)
	}
	tokens, err := lex(source)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	p := &parser{tokens: tokens}
	body, _, err := p.body()
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	return &Template{body}, nil
}

// render executes the template with variables. now, if it is not zero, is the time that the
// template may ask for.
func (t *Template) render(vars map[string]any, now time.Time) (string, error) {
	r, err := t.execute(vars, now)
	if err != nil {
		return "", err
	}
	return r.out.String(), nil
}

// execute executes the template with variables.
func (t *Template) execute(vars map[string]any, now time.Time) (*renderer, error) {
	r := &renderer{work: workMax, out: new(strings.Builder)}
	s := &scope{vars: make(map[string]any)}
	for k, v := range vars {
		s.vars[k] = v
	}
	if !now.IsZero() {
		s.vars["strftime_now"] = function(func(_ *renderer, args []any, _ *Dict) (any, error) {
			format, err := texts(args, 1, 1)
			if err != nil {
				return nil, err
			}
			return strftime(now, format[0])
		})
	}
	if _, err := r.run(t.body, s); err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	return r, nil
}

// strftime formats a time as Python does.
func strftime(now time.Time, format string) (any, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		layout, ok := map[byte]string{
			'd': "02", 'm': "01", 'Y': "2006", 'y': "06", 'b': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday",
			'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'j': "002", 'Z': "MST", 'F': "2006-01-02", 'T': "15:04:05", '%': "%",
		}[format[i]]
		if !ok {
			return nil, fmt.Errorf("the format %%%c of a time is not known here", format[i])
		}
		b.WriteString(now.Format(layout))
	}
	return b.String(), nil
}

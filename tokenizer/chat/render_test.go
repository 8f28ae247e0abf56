package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// render returns what a template writes, and which parts of it in {% generation %}.
func render(source string, vars []byte, now time.Time) (text string, said []string, err error) {
	v, err := decodeJSON(vars, func(s string) string { return s })
	if err != nil {
		return "", nil, err
	}
	template, err := Parse(source)
	if err != nil {
		return "", nil, err
	}
	d, ok := v.(*Dict)
	if !ok {
		return "", nil, errors.New("the variables are not an object")
	}
	r, err := template.execute(d.values, now)
	if err != nil {
		return "", nil, err
	}
	text = r.out.String()
	for _, s := range r.generated {
		said = append(said, text[s.from:s.to])
	}
	return text, said, nil
}

// conversations as JSON, with what a template may ask besides.
var conversations = []string{
	`{"messages":[{"role":"user","content":" Hi é <|im_end|> \n"}]}`,
	`{"messages":[{"role":"system","content":" Be brief.\n"},{"role":"user","content":"1+1?"},{"role":"assistant","content":" 2\n"},{"role":"user","content":"sure?"}],"add_generation_prompt":true}`,
	`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"<think>\nhm\n</think>\n\nb"},{"role":"user","content":"c"},{"role":"assistant","content":"<think>\nso\n</think>\n\nd"}]}`,
	`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","reasoning_content":"why","thinking":"why"}],"enable_thinking":false,"add_generation_prompt":true}`,
	`{"messages":[{"role":"assistant","content":"first"},{"role":"assistant","content":"again"}]}`,
	`{"messages":[{"role":"user","content":[{"type":"text","text":" one "},{"type":"image"},{"type":"text","text":"two"}]}]}`,
	`{"messages":[{"role":"user","content":{"b":{"x":1.5,"a":[1,null,true,"q'\"\n"]},"A":-3}}]}`,
	`{"messages":[{"role":"user","content":"Weather?"},{"role":"assistant","content":"","tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"weather","arguments":{"town":"Zürich \"old\"","days":3,"exact":true,"x":null,"f":1e-7}}}]},{"role":"tool","name":"weather","tool_call_id":"abcdefghi","content":"{\"sun\": 1}"},{"role":"tool","content":"more"},{"role":"assistant","content":"Sun."}],
	"tools":[{"type":"function","function":{"name":"weather","description":"tells <the> weather & more","parameters":{"type":"object","properties":{"town":{"type":"string"},"days":{"type":"integer","enum":[1,2.0,1e20]}},"required":["town"]}}}],"add_generation_prompt":true}`,
	`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"a\": 1}"}},{"function":{"name":"g","arguments":{}}}]}]}`,
	`{"messages":[]}`,
	`{"messages":[{"role":"user"}]}`,
}

// snippets are templates of one construct each, whose values must be Python's.
var snippets = []string{
	"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ -3|abs }} {{ 1e3 }} {{ 1.0 }}",
	"{{ 'a' * 3 ~ 1 + 2 }} {{ 'x' 'y' }} {{ [1, 'a', none, true, 1.5, {'k': 'v'}] }} {{ \"it's\" }} {{ ['it\\'s', 'a\"b', '\\n\\x07é'] }}",
	"{{ 'abc'[1] }}{{ 'abc'[-1] }}{{ 'abcdef'[1:4] }}{{ 'abcdef'[::-2] }}{{ 'abcdef'[-3:] }}{{ 'abc'[:-5] }}{{ [1,2,3][5:0:-1] }}{{ 'äöü'[1:] }}",
	"{% set x = 1 %}{% for i in range(3) %}{% set x = i %}{{ x }}{% endfor %}{{ x }}",
	"{% if x is defined %}a{% elif messages is mapping %}b{% else %}c{% endif %}{{ x }}{{ x|default('d') }}{{ ''|default('e', true) }}",
	"{% for i in range(10) if i is odd %}{{ loop.index }}:{{ i }}{% if i > 5 %}{% break %}{% endif %},{% else %}none{% endfor %}",
	"{% for a, b in {'x': 1, 'y': 2}.items() %}{{ a }}={{ b }};{% endfor %}{% for k in {'x': 1} %}{{ k }}{% endfor %}{% for c in 'hé' %}{{ c }}.{% endfor %}",
	"  {% if true %}\n  a  \n  {%- endif %}\n{#- c #}  \n {# d #}\n x {{- ' y ' -}} z\n",
	"{%+ if true +%}\n b\n{% endif %}\n",
	"{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ none == false }} {{ 'a' in 'cat' }} {{ 4 not in [1, 2] }} {{ 'k' in {'k': 1} }}",
	"{{ not none and 1 or 2 }} {{ 0 or 'b' }} {{ '' and 'c' }} {{ 'y' if false }} {{ ('n' if false else 'm')|upper }}",
	"{{ 'a b  c'.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' x '.strip() }}|{{ 'xxyx'.strip('x') }} {{ 'aXa'.lower().replace('a', 'bb') }}",
	"{{ 'hello wORLD'.title() }} {{ 'hello wORLD'|capitalize }} {{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.endswith('bc') }} {{ 'abcb'.find('b') }} {{ 'b'.join(['1', '2']) }}",
	"{{ [3, 1] | join('-') }} {{ [{'a': {'b': 1}}, {'a': {'b': 2}}] | map(attribute='a.b') | list }} {{ ['a'] | map('upper') | join }} {{ [0, 1, 2] | select | list }} {{ [1, 2] | reject('equalto', 1) | list }}",
	"{{ [{'a': 1}, {'a': 0}, {}] | selectattr('a') | list | length }} {{ [{'a': 1}, {}] | selectattr('a', 'defined') | list }} {{ [1, 1, 2] | unique | list }} {{ [1,2] | first }}{{ [1,2] | last }}",
	"{{ {'b': 1, 'a': [], 'c': {}} | tojson }} {{ {'b': [1, {'x': '<é\u2028>'}]} | tojson(indent=2) }} {{ 'a\\tb\"\\\\' | tojson }} {{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }} {{ [1, 2] | tojson(separators=(',', ':')) }}",
	"{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, b=3) }} {{ m() }}",
	"{% set ns = namespace(a=1) %}{% for i in [1, 2] %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.missing is defined }}",
	"{% set a, b = [1, 2] %}{{ b }}{{ a }}{% set t %} x{{ a }} {% endset %}[{{ t }}]",
	"{{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b', 'c') }} {{ {'a': 1}.get('b') }} {{ {'a': 1, 'b': 2}.keys() | list }} {{ dict(a=1)['a'] }}",
	"{{ loop is defined }}{% for i in [1,2,3] %}{{ loop.previtem if loop.previtem is defined }}{{ loop.nextitem }}{{ loop.revindex0 }}{{ loop.cycle('o', 'e') }}{% endfor %}",
	"{{ 'line\none\n\n two' | indent(2) }} {{ '5'|int + 1 }} {{ 'x'|int }} {{ 3.9|int }} {{ x|length }} {{ [[1, [2]], 'a'] == [[1, [2]], 'a'] }} {{ {'a':1} != {'a':1} }}",
	"{% generation %}said{% endgeneration %} {{ 'a' is string }} {{ 1 is number }} {{ 4 is divisibleby 2 }} {{ 1 is not none }} {{ [] is iterable }} {{ 1 is in [1] }} {{ x is undefined }}",
	"{{ messages[9] }} {{ messages[9].role }}", "{{ x.y }}", "{{ x() }}", "{{ 1 + 'a' }}", "{{ 1 // 0 }}", "{{ raise_exception('no') }}", "{{ 'a' < 1 }}", "{% for a, b in [[1]] %}{% endfor %}", "{{ [1].append(2) }}",
}

type rendering struct {
	Template string          `json:"template"`
	Vars     json.RawMessage `json:"vars"`
}

type rendered struct {
	Text, Error *string
	Said        []string
	IDs         []uint32
	Mask        []int
}

// transformers returns what transformers makes of cases, or skips the test without it.
func transformers(t *testing.T, cases []rendering, args ...string) (answers []rendered) {
	t.Helper()
	if err := exec.Command("python3", "-c", "import importlib.util as u; assert u.find_spec('transformers') and u.find_spec('jinja2')").Run(); err != nil {
		t.Skip("no python3 with transformers in PATH: .ci/run installs one")
	}
	var in strings.Builder
	for _, c := range cases {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(b, '\n'))
	}
	cmd := exec.Command("python3", append([]string{"testdata/render.py"}, args...)...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(in.String()), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(out))
	for range cases {
		var one rendered
		if err := d.Decode(&one); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, one)
	}
	return answers
}

// templates returns the names of files with templates: ours, and those in the directory
// ENTRAIN_TEMPLATES, which may be of models that people have.
func templates(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/*.jinja")
	if err != nil || len(names) < 6 {
		t.Fatal(names, err)
	}
	if dir := os.Getenv("ENTRAIN_TEMPLATES"); dir != "" {
		more, err := filepath.Glob(filepath.Join(dir, "*.jinja"))
		if err != nil || len(more) == 0 {
			t.Fatal(dir, more, err)
		}
		names = append(names, more...)
	}
	return names
}

// Templates render as transformers renders them, and fail where it fails.
func TestAsTransformersRenders(t *testing.T) {
	t.Parallel()
	var cases []rendering
	names := templates(t)
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range conversations {
			vars := `{"bos_token":"<s>","eos_token":"</s>","unk_token":"<unk>",` + c[1:]
			cases = append(cases, rendering{string(b), json.RawMessage(vars)})
		}
	}
	for _, s := range snippets {
		cases = append(cases, rendering{s, json.RawMessage(conversations[1])})
	}
	failed, marked, now := 0, 0, time.Now() // a template that writes the date fails within a second of midnight
	for i, want := range transformers(t, cases) {
		c := cases[i]
		if !strings.Contains(string(c.Vars), "add_generation_prompt") {
			c.Vars = json.RawMessage(`{"add_generation_prompt":false,` + string(c.Vars[1:]))
		}
		if !strings.Contains(string(c.Vars), `"tools"`) {
			c.Vars = json.RawMessage(`{"tools":null,` + string(c.Vars[1:]))
		}
		got, said, err := render(c.Template, c.Vars, now)
		switch {
		case want.Error != nil && err == nil:
			t.Errorf("%.300s\n%s\ngot %q, want the error %s", c.Template, c.Vars, got, *want.Error)
		case want.Error != nil:
			failed++
			if r := (Raised)(""); errors.As(err, &r) && string(r) != *want.Error {
				t.Errorf("it refuses with %q, want %q", string(r), *want.Error)
			}
		case err != nil || got != *want.Text:
			t.Errorf("%.300s\n%s\ngot  %q, %v\nwant %q", c.Template, c.Vars, got, err, *want.Text)
		case !slices.Equal(said, want.Said):
			t.Errorf("%.300s\n%s\nthe assistant says %q, want %q", c.Template, c.Vars, said, want.Said)
		case len(said) > 0:
			marked++
		}
	}
	t.Logf("%d templates, %d texts of which %d have marks of what the assistant says; %d refused by both", len(names), len(cases), marked, failed)
	if failed < 10 || marked == 0 || failed > len(cases)/2 {
		t.Errorf("%d of %d fail", failed, len(cases))
	}
}

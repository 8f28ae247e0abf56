package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a file of records.
const (
	lineBytesMax = 1 << 20 // of one record; the longest known passages have some 10 KB
	itemsMax     = 1 << 20 // far above the largest task
)

// Tasks returns the names of the known tasks.
func Tasks() []string {
	names := make([]string, 0, len(tasks))
	for name := range tasks {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// tasks convert a record to an item. Each follows the task's file in lm-evaluation-harness,
// lm_eval/tasks.
var tasks = map[string]func(record []byte) (Item, error){
	"arc_challenge":  arc, // allenai/ai2_arc, ARC-Challenge
	"arc_easy":       arc, // allenai/ai2_arc, ARC-Easy
	"boolq":          boolq,
	"commonsense_qa": commonsenseQA,
	"hellaswag":      hellaswag,
	"mmlu":           mmlu,
	"openbookqa":     openBookQA,
	"piqa":           piqa,
	"sciq":           sciQ,
	"social_iqa":     socialIQA,
	"winogrande":     winogrande,
}

// Read reads the items of a task from lines of JSON, at most limit of them unless limit is 0.
func Read(task string, r io.Reader, limit int) ([]Item, error) {
	item, ok := tasks[task]
	if !ok {
		return nil, fmt.Errorf("unknown task %q: choose from %s", task, strings.Join(Tasks(), ", "))
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, lineBytesMax)
	var items []Item
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		one, err := item(line)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", task, n, err)
		}
		if items = append(items, one); len(items) == limit {
			return items, nil
		}
		if len(items) > itemsMax {
			return nil, fmt.Errorf("%s: more than %d records", task, itemsMax)
		}
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("longer than %d bytes; the file must hold one JSON record a line", lineBytesMax)
		}
		return nil, fmt.Errorf("%s: line %d: %w", task, n+1, err)
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("%s: the file has no records", task)
	}
	return items, nil
}

// spaced puts a space before each choice: the harness's target_delimiter.
func spaced(choices []string) []string {
	list := make([]string, len(choices))
	for i, c := range choices {
		list[i] = " " + c
	}
	return list
}

// index is a number that some files write as a string.
type index int

// UnmarshalJSON reads 3 and "3".
func (n *index) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(bytes.Trim(b, `"`), (*int)(n))
}

func checked(item Item, err error) (Item, error) {
	switch {
	case err != nil:
		return Item{}, err
	case len(item.Choices) < 2:
		return Item{}, fmt.Errorf("the record has %d choices: does it belong to another task?", len(item.Choices))
	case item.Gold < 0 || item.Gold >= len(item.Choices):
		return Item{}, fmt.Errorf("the record's right choice is %d of %d", item.Gold, len(item.Choices))
	}
	return item, nil
}

func arc(b []byte) (Item, error) {
	var r struct {
		Question string
		Choices  struct{ Text, Label []string }
		Answer   string `json:"answerKey"`
	}
	err := json.Unmarshal(b, &r)
	gold := slices.Index(r.Choices.Label, r.Answer)
	return checked(Item{Context: "Question: " + r.Question + "\nAnswer:", Choices: spaced(r.Choices.Text), Gold: gold}, err)
}

func boolq(b []byte) (Item, error) {
	var r struct {
		Passage, Question string
		Label             *index
		Answer            *bool // as in google/boolq; aps/super_glue has label
	}
	err := json.Unmarshal(b, &r)
	gold := -1
	if r.Label != nil {
		gold = int(*r.Label)
	} else if r.Answer != nil {
		gold = 0
		if *r.Answer {
			gold = 1
		}
	}
	return checked(Item{Context: r.Passage + "\nQuestion: " + r.Question + "?\nAnswer:", Choices: []string{" no", " yes"}, Gold: gold}, err)
}

// bracketed are the remarks of WikiHow, such as [header].
var bracketed = regexp.MustCompile(`\[.*?\]`)

func hellaswag(b []byte) (Item, error) {
	var r struct {
		Activity string `json:"activity_label"`
		A        string `json:"ctx_a"`
		B        string `json:"ctx_b"`
		Endings  []string
		Label    index
	}
	err := json.Unmarshal(b, &r)
	clean := func(s string) string {
		s = strings.ReplaceAll(strings.TrimSpace(s), " [title]", ". ")
		return strings.ReplaceAll(bracketed.ReplaceAllString(s, ""), "  ", " ")
	}
	for i := range r.Endings {
		r.Endings[i] = clean(r.Endings[i])
	}
	return checked(Item{Context: clean(r.Activity + ": " + r.A + " " + capitalize(r.B)), Choices: spaced(r.Endings), Gold: int(r.Label)}, err)
}

// capitalize is Python's str.capitalize for the characters in the data: the first letter upper
// case, the others lower case.
func capitalize(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToTitle(s[:n]) + strings.ToLower(s[n:])
}

func mmlu(b []byte) (Item, error) {
	var r struct {
		Question, Subject string
		Choices           []string
		Answer            index
	}
	err := json.Unmarshal(b, &r)
	if err == nil && len(r.Choices) != 4 {
		err = fmt.Errorf("%d choices, want 4", len(r.Choices))
	}
	if err != nil {
		return Item{}, err
	}
	var text strings.Builder
	text.WriteString(strings.TrimSpace(r.Question) + "\n")
	for i, c := range r.Choices {
		fmt.Fprintf(&text, "%c. %s\n", 'A'+i, c)
	}
	text.WriteString("Answer:")
	head := "The following are multiple choice questions (with answers) about " + strings.ReplaceAll(r.Subject, "_", " ") + ".\n\n"
	return checked(Item{Head: head, Context: text.String(), Choices: []string{" A", " B", " C", " D"}, Gold: int(r.Answer)}, nil)
}

func piqa(b []byte) (Item, error) {
	var r struct {
		Goal, Sol1, Sol2 string
		Label            index
	}
	err := json.Unmarshal(b, &r)
	return checked(Item{Context: "Question: " + r.Goal + "\nAnswer:", Choices: spaced([]string{r.Sol1, r.Sol2}), Gold: int(r.Label)}, err)
}

// labelled holds choices with labels, as several data sets have them.
type labelled struct{ Text, Label []string }

func openBookQA(b []byte) (Item, error) {
	var r struct {
		Question string `json:"question_stem"`
		Choices  labelled
		Answer   string `json:"answerKey"`
	}
	err := json.Unmarshal(b, &r)
	gold := slices.Index(r.Choices.Label, strings.TrimLeft(r.Answer, " "))
	return checked(Item{Context: r.Question, Choices: spaced(r.Choices.Text), Gold: gold}, err)
}

func commonsenseQA(b []byte) (Item, error) {
	var r struct {
		Question string
		Choices  labelled
		Answer   string `json:"answerKey"`
	}
	err := json.Unmarshal(b, &r)
	if err == nil && len(r.Choices.Text) != 5 {
		err = fmt.Errorf("%d choices, want 5", len(r.Choices.Text))
	}
	text := "Question: " + strings.TrimSpace(r.Question) + "\n"
	letters := []string{"A", "B", "C", "D", "E"}
	for i, c := range r.Choices.Text[:min(len(r.Choices.Text), len(letters))] {
		text += letters[i] + ". " + c + "\n"
	}
	return checked(Item{Context: text + "Answer:", Choices: spaced(letters), Gold: slices.Index(letters, r.Answer)}, err)
}

func sciQ(b []byte) (Item, error) {
	var r struct {
		Support, Question, Distractor1, Distractor2, Distractor3 string
		Right                                                    string `json:"correct_answer"`
	}
	err := json.Unmarshal(b, &r)
	if err == nil && r.Right == "" {
		err = errors.New("the record has no correct_answer: does it belong to another task?")
	}
	text := strings.TrimLeftFunc(r.Support, unicode.IsSpace) + "\nQuestion: " + r.Question + "\nAnswer:"
	return checked(Item{Context: text, Choices: spaced([]string{r.Distractor1, r.Distractor2, r.Distractor3, r.Right}), Gold: 3}, err)
}

func socialIQA(b []byte) (Item, error) {
	var r struct {
		Context, Question, AnswerA, AnswerB, AnswerC string
		Label                                        index // from 1
	}
	err := json.Unmarshal(b, &r)
	return checked(Item{Context: "Q: " + r.Context + " " + r.Question + "\nA:", Choices: spaced([]string{r.AnswerA, r.AnswerB, r.AnswerC}), Gold: int(r.Label) - 1}, err)
}

// winogrande asks what stands for the gap of a sentence: the rest is scored after each option.
func winogrande(b []byte) (Item, error) {
	var r struct {
		Sentence, Option1, Option2 string
		Answer                     index // from 1
	}
	err := json.Unmarshal(b, &r)
	before, rest, found := strings.Cut(r.Sentence, "_")
	if err == nil && !found {
		err = errors.New("the record's sentence has no gap: does it belong to another task?")
	}
	rest = " " + strings.TrimSpace(rest)
	return checked(Item{Before: []string{before + r.Option1, before + r.Option2}, Choices: []string{rest, rest}, Gold: int(r.Answer) - 1}, err)
}

package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/entrain-network/entrain/tokenizer/chat"
)

// content says which fields of a source's rows are learnt.
type content struct {
	field  string   // with the text, the messages or the question
	chat   bool     // the rows are conversations
	answer string   // the field with the answer to the question, or ""
	wants  []string // the fields that are read; nil: all
}

// Fields that hold a text or a conversation, in the order in which a row without a named field is
// asked for them.
var (
	messageFields  = []string{"messages", "conversations", "conversation"}
	questionFields = []string{"instruction", "prompt", "question"}
	answerFields   = []string{"output", "completion", "response", "answer"}
	contextFields  = []string{"input", "context"} // of a question
)

// contentOf tells from the first row of a source what its rows are. field is "" for what contentOf
// finds.
func contentOf(row map[string]json.RawMessage, field string) (c content, err error) {
	if field == "" {
		candidates := slices.Concat([]string{DefaultField}, messageFields, questionFields)
		i := slices.IndexFunc(candidates, func(name string) bool {
			_, ok := row[name]
			return ok && (!slices.Contains(questionFields, name) || answerOf(row, name) != "")
		})
		if i < 0 {
			return c, fmt.Errorf("it has none of the fields text, messages, conversations, or instruction with output: name the field of the text, or of the messages, with --field; its fields are %s", fieldNames(row))
		}
		field = candidates[i]
	}
	value, ok := row[field]
	if !ok {
		return c, fmt.Errorf("it has no field %q: name the field of the text, or of the messages, with --field; its fields are %s", field, fieldNames(row))
	}
	c = content{field: field}
	if slices.Contains(questionFields, field) {
		c.answer = answerOf(row, field)
	}
	switch value = bytes.TrimSpace(value); {
	case c.answer != "", len(value) > 0 && value[0] == '{':
		c.chat = true
	case len(value) > 0 && value[0] == '[':
		if first := bytes.TrimSpace(value[1:]); !bytes.HasPrefix(first, []byte("{")) && !bytes.HasPrefix(first, []byte("]")) {
			return c, fmt.Errorf("field %q holds a list, but neither text nor messages", field)
		}
		c.chat = true
	}
	c.wants = []string{field}
	if c.chat {
		c.wants = append([]string{field, c.answer, "system", "tools"}, contextFields...)
	}
	return c, nil
}

// answerOf returns the field with the answer to a question.
func answerOf(row map[string]json.RawMessage, question string) string {
	for _, name := range answerFields {
		if _, ok := row[name]; ok && name != question {
			return name
		}
	}
	return ""
}

// objectOf parses a row.
func objectOf(line []byte) (object map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(line, &object); err != nil {
		return nil, fmt.Errorf("it is not a JSON object: %w", err)
	}
	return object, nil
}

// said is a message as it is written here.
type said struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// conversation returns the conversation of a row, false if there is none: messages as OpenAI's API
// has them, those of ShareGPT, or a question and its answer as Alpaca has them.
func (c content) conversation(line []byte) (of chat.Conversation, ok bool, err error) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return of, false, nil
	}
	row, err := objectOf(line)
	if err != nil {
		return of, false, err
	}
	value, has := row[c.field]
	if !has && c.answer != "" {
		return of, false, fmt.Errorf("it has no field %q; its fields are %s", c.field, fieldNames(row))
	}
	system, err := textOf(row, "system")
	if err != nil {
		return of, false, err
	}
	var messages []json.RawMessage
	if c.answer != "" {
		messages, err = c.pair(row, system)
	} else {
		messages, err = messagesOf(value, system)
	}
	if err != nil || len(messages) == 0 {
		return of, false, err
	}
	if of.Messages, err = json.Marshal(messages); err != nil {
		return of, false, err
	}
	of.Tools = row["tools"]
	if text, err := textOf(row, "tools"); err == nil && len(of.Tools) > 0 { // JSON as a text, or null
		of.Tools = json.RawMessage(text)
	}
	return of, true, nil
}

// textOf returns a field that is a text, null or absent.
func textOf(row map[string]json.RawMessage, field string) (string, error) {
	var text *string
	if value, ok := row[field]; ok {
		if err := json.Unmarshal(value, &text); err != nil {
			return "", fmt.Errorf("field %q is %.20s..., not a string", field, value)
		}
	}
	if text == nil {
		return "", nil
	}
	return *text, nil
}

// pair returns the messages of a question and its answer, each a text or messages.
func (c content) pair(row map[string]json.RawMessage, system string) (messages []json.RawMessage, err error) {
	for i, field := range []string{c.field, c.answer} {
		if value := bytes.TrimSpace(row[field]); len(value) > 0 && value[0] == '[' {
			list, err := messagesOf(value, "")
			if err != nil {
				return nil, fmt.Errorf("field %q: %w", field, err)
			}
			messages = append(messages, list...)
			continue
		}
		text, err := textOf(row, field)
		if err != nil {
			return nil, err
		}
		role := "assistant"
		if i == 0 {
			role = "user"
			for _, name := range contextFields {
				more, err := textOf(row, name)
				if err != nil {
					return nil, err
				}
				if strings.TrimSpace(more) != "" {
					text += "\n\n" + more
				}
			}
		}
		messages = append(messages, message(role, text))
	}
	return instructed(messages, system), nil
}

func message(role, text string) json.RawMessage {
	b, _ := json.Marshal(said{role, text}) // no texts fail
	return b
}

// instructed puts a system message first, if there is one.
func instructed(messages []json.RawMessage, system string) []json.RawMessage {
	if system == "" {
		return messages
	}
	return slices.Insert(messages, 0, message("system", system))
}

// shareGPT are the roles of ShareGPT's messages.
var shareGPT = map[string]string{
	"human": "user", "user": "user", "gpt": "assistant", "chatgpt": "assistant", "assistant": "assistant", "bing": "assistant", "bard": "assistant",
	"model": "assistant", "system": "system", "tool": "tool", "observation": "tool", "function_response": "tool",
}

// messagesOf returns the messages in a field, as OpenAI's API has them. system is the system
// message of ShareGPT's.
func messagesOf(value json.RawMessage, system string) ([]json.RawMessage, error) {
	value = bytes.TrimSpace(value)
	if len(value) > 0 && value[0] == '{' {
		var err error
		if value, err = transposed(value); err != nil {
			return nil, err
		}
	}
	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); len(value) > 0 && err != nil {
		return nil, fmt.Errorf("the messages are %.20s..., not a list", value)
	}
	isShared := false
	for i, m := range list {
		var of struct {
			Role, From, Value *string
		}
		if err := json.Unmarshal(m, &of); err != nil || of.Role != nil || of.From == nil {
			continue // the template says what is wrong with it
		}
		role, known := shareGPT[*of.From]
		if !known {
			return nil, fmt.Errorf("message %d is from %.40q, which is none of human, gpt, system and tool", i, *of.From)
		}
		if of.Value == nil {
			return nil, fmt.Errorf("message %d has no value", i)
		}
		list[i], isShared = message(role, *of.Value), true
	}
	if isShared {
		list = instructed(list, system)
	}
	return list, nil
}

// transposed makes a list of objects of an object of lists, which is how Hugging Face's datasets
// keeps a Sequence of objects.
func transposed(value json.RawMessage) (json.RawMessage, error) {
	var columns map[string][]json.RawMessage
	if err := json.Unmarshal(value, &columns); err != nil {
		return nil, errors.New("the messages are an object, not a list")
	}
	var list []map[string]json.RawMessage
	for name, column := range columns {
		for len(list) < len(column) {
			list = append(list, map[string]json.RawMessage{})
		}
		for i, v := range column {
			list[i][name] = v
		}
	}
	return json.Marshal(list)
}

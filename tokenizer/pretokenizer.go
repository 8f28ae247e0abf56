package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// stepJSON is a pre-tokenizer of any known type.
type stepJSON struct {
	Type             string            `json:"type"`
	PreTokenizers    []json.RawMessage `json:"pretokenizers"`     // of Sequence
	Pattern          *patternJSON      `json:"pattern"`           // of Split
	Behavior         string            `json:"behavior"`          // of Split
	Invert           bool              `json:"invert"`            // of Split
	IndividualDigits bool              `json:"individual_digits"` // of Digits
	AddPrefixSpace   bool              `json:"add_prefix_space"`  // of ByteLevel
	TrimOffsets      bool              `json:"trim_offsets"`      // of ByteLevel; does not affect ids
	UseRegex         *bool             `json:"use_regex"`         // of ByteLevel
}

type patternJSON struct {
	Regex  *string `json:"Regex"`
	String *string `json:"String"`
}

// parseSplitter reads pre_tokenizer: ByteLevel, alone or after Digits and a Split by a known
// pattern.
func parseSplitter(b json.RawMessage) (splitter, error) {
	steps, err := parseSteps(b)
	if err != nil {
		return splitter{}, err
	}
	var s splitter
	for i, step := range steps {
		last := i == len(steps)-1
		switch {
		case step.Type == "Digits" && i == 0 && !last:
			s.digits = digitsRuns
			if step.IndividualDigits {
				s.digits = digitsSingle
			}
		case step.Type == "Split" && i == len(steps)-2:
			if s.pattern, err = step.known(); err != nil {
				return s, err
			}
		case step.Type == "ByteLevel" && last:
			return s, step.byteLevel(&s)
		default:
			return s, fmt.Errorf("%.80q (step %d of %d) is not supported, only Digits, Split and ByteLevel in this order", step.Type, i+1, len(steps))
		}
	}
	return s, errors.New("none: a byte-level vocabulary needs ByteLevel")
}

// parseSteps returns the steps of a Sequence, or the single step.
func parseSteps(b json.RawMessage) ([]stepJSON, error) {
	if isNull(b) {
		return nil, nil
	}
	first, err := parseStep(b)
	if err != nil || first.Type != "Sequence" {
		return []stepJSON{first}, err
	}
	var steps []stepJSON
	for _, raw := range first.PreTokenizers {
		step, err := parseStep(raw)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}

func parseStep(b json.RawMessage) (s stepJSON, err error) { return s, decodeStep(b, &s) }

// decodeStep decodes a step of a tokenizer. Its error names the step's type, which may be one whose
// fields are not known.
func decodeStep(b json.RawMessage, step any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(step)
	var is struct {
		Type string `json:"type"`
	}
	if err != nil && json.Unmarshal(b, &is) == nil {
		return fmt.Errorf("%.80q is not supported as it is here: %w", is.Type, err)
	}
	return err
}

// known returns the pattern of a Split.
func (s stepJSON) known() (pattern, error) {
	// equivalent, since the patterns match all text
	whole := s.Behavior == "Isolated" && !s.Invert || s.Behavior == "Removed" && s.Invert
	if s.Pattern == nil || s.Pattern.Regex == nil || !whole {
		return uncut, fmt.Errorf("a Split with behavior %.80q is not supported, only an isolated regex", s.Behavior)
	}
	for _, p := range patterns {
		if p.regex == *s.Pattern.Regex {
			return p.pattern, nil
		}
	}
	return uncut, fmt.Errorf("the split pattern is not one of the %d supported ones (GPT-2, GPT-4, GPT-4o, Llama 3, Qwen 2, Mistral's Tekken): %.400s", len(patterns), *s.Pattern.Regex)
}

// byteLevel reads the last step.
func (s stepJSON) byteLevel(to *splitter) error {
	if s.AddPrefixSpace {
		return errors.New("add_prefix_space is not supported, because it changes the text")
	}
	if s.UseRegex != nil && !*s.UseRegex {
		return nil
	}
	if to.pattern != uncut {
		return errors.New("ByteLevel with use_regex after a Split is not supported")
	}
	to.pattern = gpt2
	return nil
}

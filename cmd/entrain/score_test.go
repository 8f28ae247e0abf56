package main

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/participant"
)

func TestValidateRefusesWhatItCannotDo(t *testing.T) {
	for _, c := range []struct {
		o    validateOptions
		want string
	}{
		{validateOptions{ValidatorOptions: participant.ValidatorOptions{Workers: 0, Stake: 1}}, "--workers"},
		{validateOptions{ValidatorOptions: participant.ValidatorOptions{Workers: 1}}, "--stake"},
		{validateOptions{ValidatorOptions: participant.ValidatorOptions{Workers: 1, Stake: 1, Pool: "No Pool"}}, "--pool"},
	} {
		if err := c.o.Check(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
	if _, err := optionalKey("payee", "me"); err == nil {
		t.Error("payee \"me\" is a key")
	}
}

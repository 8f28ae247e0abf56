package onchain

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
)

// PoolPrefix marks the name of a pool where the name of a run may stand as well, and StakePrefix a
// run in which tokens become stake.
const PoolPrefix, StakePrefix = "pool:", "stake:"

// ParseTokens reads an amount of tokens, which are whole.
func ParseTokens(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not an amount: want a whole number of tokens, 1 or more", s)
	}
	return n, nil
}

// ParseKey reads a public key.
func ParseKey(s string) (key.Public, error) {
	k, err := key.ParsePublic(s)
	if err != nil {
		return k, fmt.Errorf("%q: want a public key of 64 hexadecimal digits, as entrain key prints it", s)
	}
	return k, nil
}

// ParseKeys reads public keys, and returns each once and in order, as transactions want them.
func ParseKeys(texts []string) ([]key.Public, error) {
	if len(texts) > host.AdmitKeysMax {
		return nil, fmt.Errorf("%d keys at once, at most %d", len(texts), host.AdmitKeysMax)
	}
	var keys []key.Public
	for _, s := range texts {
		k, err := ParseKey(s)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	slices.SortFunc(keys, key.Public.Compare)
	return slices.Compact(keys), nil
}

// Naming returns the transaction that gives its sender a name and a team, or takes both away if
// name is "".
func Naming(name, team string) (host.SetName, error) {
	if name == "" && team != "" {
		return host.SetName{}, errors.New("a member of a team has a name: entrain key --name NAME --team TEAM")
	}
	for _, word := range []string{name, team} {
		if word != "" && !host.NameValid(word) {
			return host.SetName{}, fmt.Errorf("%q: want 2 to %d of a-z, 0-9 and inner '-', and not only digits", word, host.NameBytesMax)
		}
	}
	return host.SetName{Name: name, Team: team}, nil
}

// CheckPoolName refuses what cannot be the name of a pool.
func CheckPoolName(name string) error {
	if !host.RunNameValid(name) {
		return fmt.Errorf("%q is not a pool's name: names have 1 to %d of a-z, 0-9 and inner '-'", name, host.RunNameBytesMax)
	}
	return nil
}

// Payment returns the transaction that sends tokens to what text names, a key, RUN, RUN@HOST or
// pool:POOL, and what that is in words. The address in RUN@HOST becomes the endpoint.
func Payment(text string, amount uint64, endpoints *[]string) (body host.Body, to string, err error) {
	pool, lent := strings.CutPrefix(text, PoolPrefix)
	switch {
	case lent:
		return host.Lend{Pool: pool, Amount: amount}, fmt.Sprintf("pool %q", pool), CheckPoolName(pool)
	case host.RunNameValid(text) || strings.Contains(text, "@"):
		run, err := LocatedOne(text, endpoints)
		fund := host.ToRun(run, coordinator.Fund{})
		fund.Value = amount
		return fund, fmt.Sprintf("the treasury of run %q", run), err
	}
	k, err := ParseKey(text)
	if err != nil {
		err = fmt.Errorf("want a key, a run, stake:RUN or pool:POOL: %w", err)
	}
	return host.Transfer{To: k, Amount: amount}, k.String(), err
}

package onchain

import (
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/host"
)

// Keys are read once each and in order, and no more of them than a transaction takes.
func FuzzParseKeys(f *testing.F) {
	f.Add(strings.Repeat("ab", 32) + " " + strings.Repeat("01", 32) + " " + strings.Repeat("ab", 32))
	f.Add("rubbish")
	f.Add(strings.Repeat("x ", host.AdmitKeysMax+1))
	f.Fuzz(func(t *testing.T, line string) {
		texts := strings.Fields(line)
		keys, err := ParseKeys(texts)
		if err != nil {
			return
		}
		if len(keys) > min(len(texts), host.AdmitKeysMax) {
			t.Errorf("%d keys of %d texts", len(keys), len(texts))
		}
		for i, k := range keys {
			if i > 0 && keys[i-1].Compare(k) >= 0 {
				t.Errorf("%s is not after %s", k, keys[i-1])
			}
			if !slices.ContainsFunc(texts, func(s string) bool { return strings.EqualFold(s, k.String()) }) {
				t.Errorf("%s is in none of the texts", k)
			}
		}
	})
}

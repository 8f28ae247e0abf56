package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A validator that could not set a subnet's weights makes no key and takes no seat. The error uses btcli's names.
func TestValidateForASubnetSaysWhatIsMissing(t *testing.T) {
	s := newShell(t)
	wallets := t.TempDir()
	s.env["BT_WALLET_PATH"], s.env["BT_WALLET_NAME"] = wallets, "me"
	args := []string{"validate", "a-run", "--bittensor", "12"}
	s.fails(args, "--bittensor 12", filepath.Join(wallets, "me", "hotkeys", "default"), "BT_WALLET_HOTKEY")
	if err := os.MkdirAll(filepath.Join(wallets, "me", "hotkeys"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(wallets, "me", "hotkeys", "mine"), `{"secretSeed":"0x`+strings.Repeat("17", 32)+`"}`)
	s.env["BT_WALLET_HOTKEY"] = "mine"
	stranger := httptest.NewServer(http.NotFoundHandler())
	defer stranger.Close()
	s.env["BT_SUBTENSOR_CHAIN_ENDPOINT"] = strings.Replace(stranger.URL, "http", "ws", 1)
	s.fails(args, "--bittensor 12", "BT_SUBTENSOR_CHAIN_ENDPOINT", "not an endpoint of a Bittensor chain")
	s.env["ENTRAIN_CACHE_MAX"] = "much"
	s.fails(args, "ENTRAIN_CACHE_MAX")
	if left, err := os.ReadDir(s.console.places.Config); len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

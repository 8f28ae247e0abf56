package onchain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/solana"
)

// ClockSkew returns how far this machine's clock is ahead of the first endpoint that tells its
// time. The time of the last block would not do: a chain without work makes no blocks.
func ClockSkew(endpoints []string) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, Patience)
		defer cancel()
		var errs []error
		for _, e := range endpoints {
			if solana.IsPlace(e) {
				return 0, nil // nothing that is signed for Solana holds a time
			}
			skew, err := skewOf(ctx, strings.TrimSuffix(e, "/")+"/v1/status")
			if err == nil {
				return skew, nil
			}
			errs = append(errs, err)
		}
		return 0, errors.Join(errs...)
	}
}

func skewOf(ctx context.Context, url string) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return 0, err
	}
	client := http.Client{CheckRedirect: ledger.Redirects}
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	if err := res.Body.Close(); err != nil {
		return 0, err
	}
	theirs, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		return 0, fmt.Errorf("%s does not tell its time: %w", url, err)
	}
	return time.Since(theirs), nil
}

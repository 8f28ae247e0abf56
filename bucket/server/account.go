package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/s3err"
)

// secretOf derives the secret of an account from that of the root.
func secretOf(root, access string) string {
	h := hmac.New(sha256.New, []byte(root))
	h.Write([]byte("entrain/bucket/server/" + access))
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// The begins of the access keys of those who may write to a bucket and of those who may read it.
const (
	writer = "w-"
	reader = "r-"
)

// Credentials returns the keys with which a bucket is written, or only read.
func Credentials(rootSecret, bucket string, write bool) (access, secret string) {
	access = reader + bucket
	if write {
		access = writer + bucket
	}
	return access, secretOf(rootSecret, access)
}

// policy lets the bucket's writer do everything in it, and its reader get and list objects and nothing else.
func policy(bucket string) string {
	const statement = `{"Effect":"Allow","Principal":{"AWS":["%s"]},"Action":["%s"],"Resource":["arn:aws:s3:::%s"]}`
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[`+strings.Join(slices.Repeat([]string{statement}, 4), ",")+`]}`,
		writer+bucket, "s3:*", bucket, writer+bucket, "s3:*", bucket+"/*",
		reader+bucket, "s3:ListBucket", bucket, reader+bucket, "s3:GetObject", bucket+"/*")
}

// accounts is the gateway's directory of users.
type accounts struct{ rootSecret string }

// GetUserAccount returns the account of an access key.
func (a accounts) GetUserAccount(access string) (auth.Account, error) {
	role := auth.RoleUser
	if strings.HasPrefix(access, writer) {
		role = auth.RoleUserPlus // may make buckets
	} else if !strings.HasPrefix(access, reader) {
		return auth.Account{}, auth.ErrNoSuchUser
	}
	return auth.Account{Access: access, Secret: secretOf(a.rootSecret, access), Role: role}, nil
}

// ResolveAccounts returns those of the keys that are no accounts.
func (a accounts) ResolveAccounts(keys []string) (unknown []string, err error) {
	for _, k := range keys {
		if _, err := a.GetUserAccount(k); err != nil {
			unknown = append(unknown, k)
		}
	}
	return unknown, nil
}

// CreateAccount is not offered: accounts are derived.
func (accounts) CreateAccount(auth.Account) error { return s3err.GetAPIError(s3err.ErrNotImplemented) }

// UpdateUserAccount is not offered: accounts are derived.
func (accounts) UpdateUserAccount(string, auth.MutableProps) error {
	return s3err.GetAPIError(s3err.ErrNotImplemented)
}

// DeleteUserAccount is not offered: accounts are derived.
func (accounts) DeleteUserAccount(string) error { return s3err.GetAPIError(s3err.ErrNotImplemented) }

// ListUserAccounts is not offered: accounts are derived.
func (accounts) ListUserAccounts() ([]auth.Account, error) {
	return nil, s3err.GetAPIError(s3err.ErrNotImplemented)
}

// Shutdown does nothing.
func (accounts) Shutdown() error { return nil }

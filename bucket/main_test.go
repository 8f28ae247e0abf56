package bucket_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/entrain-network/entrain/bucket/server"
)

func TestMain(m *testing.M) {
	server.Child()
	goleak.VerifyTestMain(m)
}

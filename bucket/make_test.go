package bucket

import (
	"context"

	"github.com/minio/minio-go/v7"
)

// Make makes the bucket of a location, unless there is one, and sets its policy, in Amazon's JSON,
// unless that is empty.
func (c *Client) Make(ctx context.Context, l Location, policy string) error {
	opened, err := c.Open(l)
	if err != nil {
		return err
	}
	s := opened.(*s3)
	ctx = allow(ctx, 3, 3*replyBytesMax)
	err = s.core.MakeBucket(ctx, l.Bucket, minio.MakeBucketOptions{Region: l.Region})
	if code := minio.ToErrorResponse(err).Code; err != nil && code != "BucketAlreadyOwnedByYou" && code != "BucketAlreadyExists" {
		return s.fault(ctx, "make", "", err)
	}
	if policy == "" {
		return nil
	}
	return s.fault(ctx, "set policy of", "", s.core.SetBucketPolicy(ctx, l.Bucket, policy))
}

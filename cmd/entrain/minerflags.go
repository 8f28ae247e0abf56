package main

import (
	"github.com/entrain-network/entrain/participant"
	"github.com/spf13/cobra"
)

// miningFlags adds the flags about a miner's bucket.
func miningFlags(cmd *cobra.Command, m *participant.Mining) {
	f := cmd.Flags()
	f.StringVar(&m.Role, "role", "", "take part as client, in a run of peers, or as miner, in one of buckets: refused if the `role` is not what\nthe run asks for (default: what it asks for)")
	f.StringVar(&m.Own, "bucket", "", "your S3 bucket: a `file` with one line, s3://KEY:SECRET@host/bucket/prefix?region=R, or that line without\nKEY and SECRET, which are then read from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY);\nfor runs that exchange by buckets (default: the variable ENTRAIN_BUCKET)")
	f.StringVar(&m.Read, "bucket-read", "", "a `file` with the same bucket as others read it, in the same form, with credentials that can only read: they are\nannounced to everybody (default: ENTRAIN_BUCKET_READ, or --bucket without credentials)")
	f.BoolVar(&m.Private, "private-buckets", false, "read other miners' buckets at addresses of this machine and of private networks as well")
	f.BoolVar(&m.Shared, "bucket-shared", false, "announce credentials that may write")
	_ = f.MarkHidden("bucket-shared")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions([]string{participant.RoleClient, participant.RoleMiner}, cobra.ShellCompDirectiveNoFileComp))
}

package bucket

import "errors"

// WithEnvironment returns the location, with credentials from the environment if it has none:
// ENTRAIN_S3_ACCESS_KEY and ENTRAIN_S3_SECRET_KEY, or else AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
// and AWS_SESSION_TOKEN. Use it only for locations named by the user of this process: locations
// from strangers must not receive these credentials.
func (l Location) WithEnvironment(getenv func(string) string) (Location, error) {
	if l.AccessKey != "" {
		return l, nil
	}
	access, secret, token := getenv("ENTRAIN_S3_ACCESS_KEY"), getenv("ENTRAIN_S3_SECRET_KEY"), ""
	if access == "" && secret == "" {
		access, secret, token = getenv("AWS_ACCESS_KEY_ID"), getenv("AWS_SECRET_ACCESS_KEY"), getenv("AWS_SESSION_TOKEN")
	}
	if (access == "") != (secret == "") {
		return l, errors.New("only one of ENTRAIN_S3_ACCESS_KEY and ENTRAIN_S3_SECRET_KEY is set: set both")
	}
	l.AccessKey, l.SecretKey, l.Token = Secret(access), Secret(secret), Secret(token)
	return l, l.Check()
}

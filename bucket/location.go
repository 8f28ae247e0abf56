package bucket

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// Secret is text that no formatting verb prints; string(s) returns the text itself.
type Secret string

// hidden is printed in place of a secret.
const hidden = "(hidden)"

// Format prints a placeholder, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) {
	if s != "" {
		fmt.Fprint(f, hidden)
	}
}

// MarshalText keeps the secret out of JSON and logs.
func (s Secret) MarshalText() ([]byte, error) { return fmt.Append(nil, s), nil }

// Location is the address of a bucket and the credentials to use it. Its text form (see URL) is
//
//	s3://KEY:SECRET@host:port/bucket/prefix?region=r&tls=0
//
// Host and bucket are required. Without credentials, requests are not signed, which works for
// buckets that are publicly readable. The default region is us-east-1, which most servers other
// than Amazon's accept. With tls=0 the connection is not encrypted, for a server on this machine.
//
// Locations are comparable. Printing one shows everything but the credentials.
type Location struct {
	Endpoint  string // host or host:port
	Region    string // "" for us-east-1
	Bucket    string
	Prefix    string // common to all keys, without leading or trailing slash; may be empty
	AccessKey Secret
	SecretKey Secret
	Token     Secret // for temporary credentials; not part of the text form
	Secure    bool   // use TLS
}

// defaultRegion is used when a location names no region.
const defaultRegion = "us-east-1"

// scheme begins the text of a location.
const scheme = "s3://"

// IsLocation reports whether an address, of a peer or of data, is meant to be a location.
func IsLocation(s string) bool { return strings.HasPrefix(s, scheme) }

// URL returns the text form, credentials included. A member registers it when these credentials are
// read-only.
func (l Location) URL() string { return l.text(false) }

// String returns the text with the credentials hidden.
func (l Location) String() string { return l.text(true) }

// GoString returns the text with the credentials hidden.
func (l Location) GoString() string { return l.text(true) }

func (l Location) text(hide bool) string {
	u := url.URL{Scheme: "s3", Host: l.Endpoint, Path: "/" + l.Bucket}
	if l.Prefix != "" {
		u.Path += "/" + l.Prefix
	}
	var query []string
	if l.Region != "" && l.Region != defaultRegion {
		query = append(query, "region="+l.Region)
	}
	if !l.Secure {
		query = append(query, "tls=0")
	}
	u.RawQuery = strings.Join(query, "&")
	switch {
	case l.AccessKey == "":
	case hide:
		return strings.Replace(u.String(), scheme, scheme+hidden+"@", 1)
	default:
		u.User = url.UserPassword(string(l.AccessKey), string(l.SecretKey))
	}
	return u.String()
}

// ParseLocation is the inverse of URL. It also takes region and tls in any order, and explicit
// default values. Errors do not repeat the text, as it may hold a secret.
func ParseLocation(s string) (Location, error) {
	l, err := parseLocation(s)
	if err != nil {
		return Location{}, fmt.Errorf("bucket location: %w (want s3://KEY:SECRET@host:port/bucket/prefix?region=r&tls=0)", err)
	}
	return l, nil
}

func parseLocation(s string) (Location, error) {
	if len(s) > 4*LocationBytesMax {
		return Location{}, errors.New("it is too long")
	}
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return Location{}, errors.New("it has a character that is not printable ASCII")
		}
	}
	u, err := url.Parse(s)
	if err != nil {
		return Location{}, errors.New("it is not a URL")
	}
	if u.Scheme != "s3" || u.Opaque != "" || u.Fragment != "" || strings.HasSuffix(s, "#") {
		return Location{}, errors.New("it does not begin with s3://, or has a fragment")
	}
	l := Location{Endpoint: u.Host, Secure: true}
	l.Bucket, l.Prefix, _ = strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	l.Prefix = strings.TrimSuffix(l.Prefix, "/")
	if u.User != nil {
		secret, _ := u.User.Password()
		l.AccessKey, l.SecretKey = Secret(u.User.Username()), Secret(secret)
		if l.AccessKey == "" || l.SecretKey == "" {
			return Location{}, errors.New("it has only one of access key and secret")
		}
	}
	if err := l.parseQuery(u.RawQuery); err != nil {
		return Location{}, err
	}
	return l, l.Check()
}

func (l *Location) parseQuery(query string) error {
	seen := ""
	for query != "" {
		var field string
		field, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(field, "=")
		if strings.Contains(seen, "|"+name+"|") {
			return fmt.Errorf("%q is given twice", name)
		}
		seen += "|" + name + "|"
		switch {
		case name == "region" && value != "":
			if l.Region = value; value == defaultRegion {
				l.Region = ""
			}
		case name == "tls" && (value == "0" || value == "1"):
			l.Secure = value == "1"
		default:
			return errors.New(`it has a parameter other than region=NAME and tls=0`)
		}
	}
	return nil
}

// Check returns what is wrong with a location, as far as this can be determined without the
// network.
func (l Location) Check() error {
	switch {
	case !endpointValid(l.Endpoint):
		return errors.New("the endpoint is not of the form host or host:port")
	case len(l.Bucket) < 3 || len(l.Bucket) > 63 || !within(l.Bucket, lower+digits+".-") || strings.Contains(l.Bucket, "..") ||
		strings.ContainsAny(l.Bucket[:1]+l.Bucket[len(l.Bucket)-1:], ".-"):
		return errors.New("the bucket's name must be 3 to 63 characters of a-z 0-9 . - that begin and end with a letter or digit")
	case len(l.Region) > 64 || !within(l.Region, lower+upper+digits+"-_"):
		return errors.New("the region must be a name such as eu-west-1")
	case len(l.AccessKey) > credentialBytesMax || len(l.SecretKey) > credentialBytesMax:
		return fmt.Errorf("the credentials are longer than %d bytes", credentialBytesMax)
	case !printable(string(l.AccessKey)) || !printable(string(l.SecretKey)) || strings.Contains(string(l.AccessKey), "/"):
		return errors.New("the credentials have unexpected characters")
	case (l.AccessKey == "") != (l.SecretKey == ""):
		return errors.New("it has only one of access key and secret")
	}
	return checkPrefix(l.Prefix)
}

func checkPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if len(prefix) > prefixBytesMax || !within(prefix, lower+upper+digits+"._-/") {
		return errors.New("the prefix is too long or has characters other than a-z A-Z 0-9 . _ - /")
	}
	for part := range strings.SplitSeq(prefix, "/") {
		if part == "" || part == "." || part == ".." {
			return errors.New("the prefix has an empty part or a part \".\" or \"..\"")
		}
	}
	return nil
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

// within reports whether s consists only of characters in set.
func within(s, set string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune(set, r) }) < 0
}

// printable reports whether s is printable ASCII without spaces.
func printable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// endpointValid reports whether s is a host, with or without a port.
func endpointValid(s string) bool {
	if len(s) > 128 {
		return false
	}
	host := s
	if i := strings.LastIndexByte(s, ':'); i > strings.LastIndexByte(s, ']') {
		port := s[i+1:]
		if len(port) == 0 || len(port) > 5 || port[0] == '0' || !within(port, digits) || len(port) == 5 && port > "65535" {
			return false
		}
		host = s[:i]
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		return ok && err == nil && a.Is6() && a.Zone() == ""
	}
	return host != "" && within(host, lower+upper+digits+".-") && !strings.HasPrefix(host, "-") && !strings.HasPrefix(host, ".")
}

// Registered returns the text that a member announces to the chain, or an error if the location
// cannot be registered. The chain is public, so the credentials must be read-only.
func (l Location) Registered() (string, error) {
	if err := l.Check(); err != nil {
		return "", fmt.Errorf("bucket location %v: %w", l, err)
	}
	s := l.URL()
	if len(s) > LocationBytesMax {
		return "", fmt.Errorf("bucket location %v: it has %d bytes, and the chain takes %d: choose a shorter bucket name or prefix", l, len(s), LocationBytesMax)
	}
	if l.Token != "" {
		return "", fmt.Errorf("bucket location %v: temporary credentials expire: announce permanent, read-only ones", l)
	}
	return s, nil
}

// Under returns l with a further prefix appended.
func (l Location) Under(prefix string) Location {
	if l.Prefix != "" {
		prefix = l.Prefix + "/" + prefix
	}
	l.Prefix = strings.Trim(prefix, "/")
	return l
}

// key returns the bucket key of a name below the prefix.
func (l Location) key(name string) string {
	if l.Prefix == "" {
		return name
	}
	return l.Prefix + "/" + name
}

// name is the inverse of key.
func (l Location) name(key string) (string, bool) {
	if l.Prefix == "" {
		return key, true
	}
	return strings.CutPrefix(key, l.Prefix+"/")
}

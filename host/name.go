package host

import "github.com/entrain-network/entrain/wire"

// SpecHash returns the hash by which a configuration names its spec.
func SpecHash(spec []byte) wire.Hash { return wire.Sum("entrain/spec", spec) }

// RunNameValid reports whether name can be a run's: 1 to RunNameBytesMax of the characters a-z, 0-9
// and '-', neither first nor last a '-'. Such a name needs no quoting in a shell, a URL or a path.
func RunNameValid(name string) bool {
	if len(name) == 0 || len(name) > RunNameBytesMax || name[0] == '-' || name[len(name)-1] == '-' {
		return false
	}
	return nameBytesValid(name)
}

// ChainIDValid reports whether id can name a chain: like a run's name, of up to ChainIDBytesMax
// bytes.
func ChainIDValid(id string) bool {
	if len(id) == 0 || len(id) > ChainIDBytesMax || id[0] == '-' || id[len(id)-1] == '-' {
		return false
	}
	return nameBytesValid(id)
}

func nameBytesValid(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

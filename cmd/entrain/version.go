package main

import "github.com/entrain-network/entrain/participant"

// release is the version of a build that does not come from a module proxy or a tagged commit:
// go build -ldflags "-X main.release=v1.2.0".
var release string

func version() participant.Program { return participant.ThisProgram(release) }

// Package shader holds the compute shaders of engine/vulkan, in GLSL and as the SPIR-V that the
// program embeds, compressed. exact.glsl is the arithmetic of package exact; generate.sh compiles.
package shader

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"io/fs"

	"github.com/entrain-network/entrain/wire"
)

//go:generate ./generate.sh

//go:embed *.spv.gz
var files embed.FS

const suffix = ".spv.gz"

// SPIRV returns the module of a shader. It panics if there is none of that name.
func SPIRV(name string) []byte {
	packed, err := files.ReadFile(name + suffix)
	if err != nil {
		panic(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err)
	}
	module, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return module
}

// Names returns the names of all shaders.
func Names() []string {
	paths, err := fs.Glob(files, "*"+suffix)
	if err != nil {
		panic(err)
	}
	for i, p := range paths {
		paths[i] = p[:len(p)-len(suffix)]
	}
	return paths
}

// Hash returns the hash of all modules. What was proven of one set of them holds for no other.
func Hash() wire.Hash {
	var all [][]byte
	for _, name := range Names() {
		all = append(all, []byte(name), SPIRV(name))
	}
	return wire.Sum("entrain/spirv", all...)
}

// Package shader holds the compute shaders of engine/vulkan, in GLSL and as the SPIR-V that the
// program embeds. exact.glsl is the arithmetic of package exact; generate.sh compiles.
package shader

import (
	"embed"
	"io/fs"

	"github.com/entrain-network/entrain/wire"
)

//go:generate ./generate.sh

//go:embed *.spv
var files embed.FS

// SPIRV returns the module of a shader. It panics if there is none of that name.
func SPIRV(name string) []byte {
	b, err := files.ReadFile(name + ".spv")
	if err != nil {
		panic(err)
	}
	return b
}

// Names returns the names of all shaders.
func Names() []string {
	paths, err := fs.Glob(files, "*.spv")
	if err != nil {
		panic(err)
	}
	for i, p := range paths {
		paths[i] = p[:len(p)-len(".spv")]
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

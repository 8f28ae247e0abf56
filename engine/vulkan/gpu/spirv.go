package gpu

import "errors"

// FloatModes are what a shader asks of the driver's floating point (SPV_KHR_float_controls,
// SPV_KHR_fma). Shaders are compiled once, without any of them. What a device offers is written
// into the module when it is loaded, because a module that asks for what a device lacks is invalid.
type FloatModes struct {
	DenormPreserve   bool // subnormals are kept
	SignedZeroInfNan bool // zeros keep their sign, and infinities and NaN are computed with
	RoundToEven      bool
	CorrectFMA       bool // OpFmaKHR, rounded once by definition, in place of GLSL's fma
}

// Numbers of SPIR-V.
const (
	spirvMagic = 0x07230203

	opExtension     = 10
	opExtInstImport = 11
	opExtInst       = 12
	opEntryPoint    = 15
	opExecutionMode = 16
	opCapability    = 17
	opDecorate      = 71
	opFNegate       = 127
	opFAdd          = 129
	opFSub          = 131
	opFMul          = 133
	opFDiv          = 136
	opFmaKHR        = 4427

	decorationNoContraction = 42

	firstType, lastType = 19, 39 // OpTypeVoid to OpTypeForwardPointer

	capabilityDenormPreserve   = 4464
	capabilitySignedZeroInfNan = 4466
	capabilityRTE              = 4467
	capabilityFMA              = 6030

	modeDenormPreserve   = 4459
	modeSignedZeroInfNan = 4461
	modeRTE              = 4462

	glslFma = 50
)

var errNoSPIRV = errors.New("not a SPIR-V module")

// withModes returns the module with these modes for 32-bit floats, and all its float arithmetic
// decorated with NoContraction.
func withModes(code []uint32, m FloatModes) ([]uint32, error) {
	if len(code) < 5 || code[0] != spirvMagic {
		return nil, errNoSPIRV
	}
	var modes, capabilities []uint32
	for _, x := range []struct {
		on               bool
		capability, mode uint32
	}{
		{m.DenormPreserve, capabilityDenormPreserve, modeDenormPreserve},
		{m.SignedZeroInfNan, capabilitySignedZeroInfNan, modeSignedZeroInfNan},
		{m.RoundToEven, capabilityRTE, modeRTE},
	} {
		if x.on {
			modes, capabilities = append(modes, x.mode), append(capabilities, x.capability)
		}
	}
	var extensions []string
	if len(modes) > 0 {
		extensions = append(extensions, "SPV_KHR_float_controls")
	}
	if m.CorrectFMA {
		capabilities, extensions = append(capabilities, capabilityFMA), append(extensions, "SPV_KHR_fma")
	}
	exact := arithmetic(code)
	out := append(make([]uint32, 0, len(code)+3*len(exact)+64), code[:5]...)
	var glsl, entry uint32
	for i := 5; i < len(code); {
		n, op := int(code[i]>>16), code[i]&0xffff
		if n == 0 || i+n > len(code) {
			return nil, errNoSPIRV
		}
		inst := code[i : i+n]
		i += n
		if op != opCapability && capabilities != nil { // the first instruction behind the capabilities
			for _, c := range capabilities {
				out = append(out, 2<<16|opCapability, c)
			}
			for _, e := range extensions {
				out = append(append(out, uint32(1+len(e)/4+1)<<16|opExtension), literal(e)...)
			}
			capabilities, extensions = nil, nil
		}
		if op >= firstType && op <= lastType { // the first instruction behind the decorations
			for _, id := range exact {
				out = append(out, 3<<16|opDecorate, id, decorationNoContraction)
			}
			exact = nil
		}
		switch op {
		case opExtInstImport:
			glsl = inst[1] // our shaders import nothing but GLSL.std.450
		case opEntryPoint:
			entry = inst[2]
		case opExtInst:
			if m.CorrectFMA && inst[3] == glsl && inst[4] == glslFma {
				out = append(out, 6<<16|opFmaKHR, inst[1], inst[2], inst[5], inst[6], inst[7])
				continue
			}
		}
		out = append(out, inst...)
		if op == opEntryPoint {
			for _, mode := range modes {
				out = append(out, 4<<16|opExecutionMode, entry, mode, 32)
			}
		}
	}
	return out, nil
}

// arithmetic returns the results of all float arithmetic.
func arithmetic(code []uint32) (ids []uint32) {
	for i := 5; i < len(code) && code[i]>>16 > 0; i += int(code[i] >> 16) {
		switch op := code[i] & 0xffff; {
		case op == opFNegate, op == opFAdd, op == opFSub, op == opFMul, op == opFDiv, op == opExtInst && code[i+4] == glslFma:
			ids = append(ids, code[i+2])
		}
	}
	return ids
}

// literal returns a string as words, zero-terminated.
func literal(s string) []uint32 {
	words := make([]uint32, len(s)/4+1)
	for i := range len(s) {
		words[i/4] |= uint32(s[i]) << (8 * (i % 4))
	}
	return words
}

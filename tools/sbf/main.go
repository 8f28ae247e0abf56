// Command sbf is what stands between TinyGo and LLVM on one side and Solana's virtual machine on
// the other, in chain/solana/build:
//
//	sbf ir <IN >OUT       makes textual LLVM IR fit for LLVM's backend for BPF
//	sbf link IN.o OUT.so  makes a program of version 3 of the machine's format from an object
package main

import (
	"bufio"
	"debug/elf"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "sbf: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "ir":
		out := bufio.NewWriter(os.Stdout)
		if err := rewrite(out, os.Stdin); err != nil {
			return err
		}
		return out.Flush()
	case len(args) == 3 && args[0] == "link":
		f, err := elf.Open(args[1])
		if err != nil {
			return err
		}
		defer f.Close()
		p, err := link(f)
		if err != nil {
			return fmt.Errorf("%s: %w", args[1], err)
		}
		b := p.file()
		fmt.Printf("%s: %d bytes, %d instructions, deepest frame %d bytes\n", args[2], len(b), len(p.text)/8, p.frame)
		return os.WriteFile(args[2], b, 0o644)
	}
	return fmt.Errorf("use: sbf ir <IN >OUT, or sbf link IN.o OUT.so")
}

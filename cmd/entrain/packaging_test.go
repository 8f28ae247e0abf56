package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra/doc"
)

// The man pages are made from the commands, as man.go has them made.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	if err := doc.GenManTree(newRoot(newShell(t).console), &doc.GenManHeader{Section: "1", Source: "entrain", Manual: "entrain"}, dir); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < commandsMost/2 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	man, err := exec.LookPath("man")
	if err != nil {
		t.Skip("no man on this machine to read the pages")
	}
	cmd := exec.Command(man, "--warnings", "-l", filepath.Join(dir, "entrain-join.1"))
	cmd.Env = append(os.Environ(), "MANWIDTH=80", "LC_ALL=C.UTF-8", "MAN_DISABLE_SECCOMP=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--limit-cores") || strings.Contains(string(out), "warning:") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Each file of arguments makes a command of ours with the unit, and systemd takes the unit.
func TestServices(t *testing.T) {
	packaging := filepath.Join("..", "..", "packaging")
	unit := filepath.Join(packaging, "entrain@.service")
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"ExecStart=/usr/bin/entrain %i $ARGS", "EnvironmentFile=/etc/entrain/%i.conf"} {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("the unit has no line %q", line)
		}
	}
	files, err := filepath.Glob(filepath.Join(packaging, "conf", "*.conf"))
	if err != nil || len(files) != 7 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, args, _ := strings.Cut(string(text), "\nARGS=")
		line := "entrain " + strings.TrimSuffix(filepath.Base(file), ".conf") + " " + strings.TrimSpace(args)
		if fault := parses(t, line); fault != "" || args == "" {
			t.Errorf("%s: %q: %s", file, line, fault)
		}
	}
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze on this machine")
	}
	// The program is not installed here: the copy names one that is.
	copied := strings.Replace(string(text), "/usr/bin/entrain", "/bin/true", 1)
	at := writeFile(t, filepath.Join(t.TempDir(), "entrain@join.service"), copied)
	if out, err := exec.Command(verify, "verify", "--man=no", at).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// install.sh installs what SHA256SUMS lists, and nothing else.
func TestInstallScript(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl on this machine")
	}
	from, to := t.TempDir(), t.TempDir()
	sum := func(name, text string) {
		t.Helper()
		file := writeFile(t, filepath.Join(from, name), "#!/bin/sh\necho "+text+"\n")
		out, err := exec.Command("sha256sum", file).Output()
		if err != nil {
			t.Skip("no sha256sum on this machine")
		}
		writeFile(t, filepath.Join(from, "SHA256SUMS"), strings.Fields(string(out))[0]+"  "+name+"\n")
	}
	install := func() (string, error) {
		cmd := exec.Command("sh", filepath.Join("..", "..", "packaging", "install.sh"))
		cmd.Env = append(os.Environ(), "ENTRAIN_FROM=file://"+from, "ENTRAIN_TO="+to)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	names, err := exec.Command("sh", "-c", "uname -s; uname -m").Output()
	if err != nil {
		t.Skip("no shell on this machine")
	}
	name := "entrain-" + strings.NewReplacer("Linux", "linux", "Darwin", "darwin", "x86_64", "amd64", "aarch64", "arm64", "\n", "-").Replace(strings.TrimSpace(string(names)))
	sum(name, "installed")
	if out, err := install(); err != nil || !strings.Contains(out, "installed") {
		t.Fatalf("%v: %s", err, out)
	}
	writeFile(t, filepath.Join(from, name), "#!/bin/sh\necho another\n")
	if out, err := install(); err == nil || !strings.Contains(out, "nothing was installed") {
		t.Errorf("a wrong file is installed: %v: %s", err, out)
	}
	sum("entrain-plan9-mips", "other")
	if out, err := install(); err == nil || !strings.Contains(out, "does not list") {
		t.Errorf("a file that is not listed is installed: %v: %s", err, out)
	}
	if got, err := os.ReadFile(filepath.Join(to, "entrain")); err != nil || !strings.Contains(string(got), "installed") {
		t.Errorf("%v: %s", err, got)
	}
	if left, err := os.ReadDir(to); err != nil || len(left) != 1 {
		t.Errorf("beside the program there is %v, %v", left, err)
	}
	// Both are listed: where there is glibc, the one for GPUs is installed if it runs.
	if _, err := os.Stat("/lib64/ld-linux-x86-64.so.2"); err != nil || runtime.GOARCH != "amd64" {
		return
	}
	static, gpu := "#!/bin/sh\necho installed static\n", "#!/bin/sh\necho installed for GPUs\n"
	for _, c := range []struct{ gpu, want string }{{gpu, "installed for GPUs"}, {"#!/bin/sh\nexit 1\n", "does not run here"}} {
		var sums []byte
		for file, text := range map[string]string{name: static, "entrain-gpu-linux-amd64": c.gpu} {
			writeFile(t, filepath.Join(from, file), text)
			sums = fmt.Appendf(sums, "%x  %s\n", sha256.Sum256([]byte(text)), file)
		}
		writeFile(t, filepath.Join(from, "SHA256SUMS"), string(sums))
		if out, err := install(); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%v: %s, want %q", err, out, c.want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(to, "entrain")); err != nil || string(got) != static {
		t.Errorf("%v: %s", err, got)
	}
}

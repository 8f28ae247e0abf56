#!/bin/sh
# Installs the newest entrain: fetches the binary for this machine, compares it with SHA256SUMS, and puts it in ~/.local/bin, or, as
# root, in /usr/local/bin. Where Linux has glibc, it is the program that can use GPUs.
#
#     curl -fsSLO https://github.com/entrain-network/entrain/releases/latest/download/install.sh && sh install.sh
#
# ENTRAIN_FROM names another place of the files, ENTRAIN_TO another directory. SHA256SUMS comes from the same place as the binary: it
# protects from damage, not from whoever controls that place. SECURITY.md says how to compare with a build of your own.
set -eu

from=${ENTRAIN_FROM:-https://github.com/entrain-network/entrain/releases/latest/download}
if [ "$(id -u)" = 0 ]; then to=/usr/local/bin; else to=$HOME/.local/bin; fi
to=${ENTRAIN_TO:-$to}

fail() { echo "install.sh: $*" >&2; exit 1; }

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) fail "no binary for $(uname -s); on Windows fetch entrain-windows-amd64.exe from $from" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "no binary for $(uname -m): build it with Go, as README.md says" ;;
esac
name=entrain-$os-$arch
# Only a program that is linked to glibc can load the driver of a GPU.
gpu=entrain-gpu-$os-$arch
case $gpu in
entrain-gpu-linux-amd64) loader=/lib64/ld-linux-x86-64.so.2 ;;
entrain-gpu-linux-arm64) loader=/lib/ld-linux-aarch64.so.1 ;;
*) loader=/nowhere ;;
esac

if command -v sha256sum >/dev/null; then
  sum() { sha256sum "$1" | cut -d ' ' -f 1; }
elif command -v shasum >/dev/null; then
  sum() { shasum -a 256 "$1" | cut -d ' ' -f 1; }
else
  fail "neither sha256sum nor shasum is here to verify the download"
fi
if command -v curl >/dev/null; then
  get() { curl -fsSL "$from/$1" -o "$2" || fail "cannot fetch $from/$1"; }
elif command -v wget >/dev/null; then
  get() { wget -q "$from/$1" -O "$2" || fail "cannot fetch $from/$1"; }
else
  fail "neither curl nor wget is here to fetch the program: install one of them"
fi

# Beside the old program, so that the new one takes its place whole.
mkdir -p "$to" && dir=$(mktemp -d "$to/.entrain.XXXXXX") || fail "cannot write to $to; name another directory with ENTRAIN_TO"
trap 'rm -rf "$dir"' EXIT
get SHA256SUMS "$dir/SHA256SUMS"
listed() { awk -v name="$1" '$2 == name || $2 == "*" name { print $1 }' "$dir/SHA256SUMS"; }
fetch() {
  want=$(listed "$1")
  [ -n "$want" ] || fail "SHA256SUMS does not list $1"
  get "$1" "$dir/entrain"
  got=$(sum "$dir/entrain")
  [ "$got" = "$want" ] || fail "$1 has SHA-256 $got, SHA256SUMS says $want: nothing was installed"
  chmod 755 "$dir/entrain"
}
if [ -e "$loader" ] && [ -n "$(listed "$gpu")" ]; then
  fetch "$gpu"
  if ! "$dir/entrain" --version >/dev/null 2>&1; then
    echo "$gpu does not run here: installing $name, which computes on processors" >&2
    fetch "$name"
  fi
else
  fetch "$name"
fi
mv "$dir/entrain" "$to/entrain" || fail "cannot write $to/entrain; name another directory with ENTRAIN_TO"
"$to/entrain" --version
case :$PATH: in
*:"$to":*) ;;
*) echo "to call it as entrain: export PATH=\"$to:\$PATH\"" >&2 ;;
esac

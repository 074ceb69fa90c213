#!/usr/bin/env bash
# Brings the CPU part of LibTorch 2.11.0 into the cache folder, once for all clones of the project.
#
# The pinned wheels come through pip, so an index, proxy or certificate configured for pip is used; pip checks their
# SHA-256. They are unpacked beside the cache folder and renamed into place when complete: a folder that is there is
# whole. Safe to run twice, at the same time, and to interrupt.
set -euo pipefail

readonly VERSION=2.11.0
readonly DOWNLOAD_MIB=519
readonly DISK_MIB=1100
# The libraries do not depend on Python; one wheel serves every Python version.
readonly WHEELS='torch==2.11.0 --hash=sha256:7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a
nvidia-cuda-runtime==13.0.96 --hash=sha256:7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
nvidia-cuda-cupti==13.0.85 --hash=sha256:4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8'

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=deploy/shell.sh
. "$here/shell.sh"
cache=$(cache_folder)
target=$cache/libtorch-$VERSION-cpu
work=$cache/.libtorch-$VERSION-cpu.partial

usage() {
  cat <<EOF
Usage: deploy/libtorch.sh [--help]

Brings the CPU part of LibTorch $VERSION ($DOWNLOAD_MIB MiB download, 500 MiB on disk) into
  $target
unless it is there already. deploy/setup.sh calls it where no other LibTorch is found.

Environment:
  AUTOLOCO_CACHE_DIR  cache folder (default: \$XDG_CACHE_HOME/autoloco or ~/.cache/autoloco)
  PIP_*               pip's own settings (index, proxy, certificates) are respected
EOF
}

check_machine() {
  [ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] ||
    fail "the pinned wheel is for Linux on x86_64, this is $(uname -s) on $(uname -m): set LIBTORCH to a LibTorch 2.7 or newer for it"
  python3 -m pip --version > /dev/null 2>&1 || fail "python3 with pip is needed (Debian: apt-get install python3-pip)"
  local free
  free=$(df -Pm "$cache" | awk 'NR == 2 {print $4}')
  [ "$free" -ge "$DISK_MIB" ] || fail "$cache has $free MiB free, $DISK_MIB MiB are needed while unpacking"
}

# Prints how much has arrived every 10 s, where pip has no terminal to draw its bar on. Ends with the script.
# pip downloads into tmp/ and then copies to wheels/, so the larger one is what has arrived.
show_progress() {
  while sleep 10 && kill -0 $$ 2> /dev/null; do
    say "  $(du -sm "$work/tmp" "$work/wheels" 2> /dev/null | sort -n | tail -n 1 | cut -f1) of $DOWNLOAD_MIB MiB"
  done
}

download() {
  mkdir -p "$work/wheels" "$work/tmp"
  printf '%s\n' "$WHEELS" > "$work/wheels.txt"
  local progress=
  if [ ! -t 1 ]; then
    show_progress 9>&- &
    progress=$!
  fi
  local platforms=() tag rc=0
  for tag in manylinux_2_28_x86_64 manylinux_2_25_x86_64 manylinux_2_17_x86_64 manylinux2014_x86_64; do
    platforms+=(--platform "$tag")
  done
  TMPDIR=$work/tmp PIP_DISABLE_PIP_VERSION_CHECK=1 python3 -m pip download --no-cache-dir --no-deps \
    --only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 "${platforms[@]}" \
    --require-hashes --requirement "$work/wheels.txt" --dest "$work/wheels" || rc=$?
  [ -z "$progress" ] || kill "$progress" 2> /dev/null || true
  return "$rc"
}

bring() {
  rm -rf "$work/tmp" "$work/unpacked"  # of an interrupted run: we hold the lock
  check_machine
  say "downloading LibTorch $VERSION (CPU part of the torch wheel, $DOWNLOAD_MIB MiB)"
  local attempt
  for attempt in 1 2 3; do
    download && break
    [ "$attempt" -lt 3 ] || fail "download failed three times (pip's message is above)"
    say "attempt $attempt failed, trying again"
    sleep 3
  done
  say "unpacking into $target"
  mkdir "$work/unpacked"
  python3 "$here/unpack_libtorch.py" "$work/wheels" "$work/unpacked"
  sync -f "$work/unpacked"
  mv -T "$work/unpacked" "$target"
  rm -rf "$work"
}

main() {
  case "${1:-}" in
    "") ;;
    -h | --help) usage; return 0 ;;
    *) usage >&2; return 2 ;;
  esac
  mkdir -p "$cache"
  exec 9> "$cache/.libtorch.lock"
  flock --nonblock 9 || { say "another set-up is bringing LibTorch, waiting for it"; flock 9; }
  [ -d "$target" ] || bring
  say "LibTorch $VERSION is in $target"
}

main "$@"

#!/usr/bin/env bash
# Builds the fuzz preset's programs and runs them, one after the other, each from its committed corpus.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
build="$root/build/fuzz"

usage() {
  cat <<EOF
Usage: tests/fuzz/run.sh [--seconds N] [--no-build | --build-only] [--merge] [DECODER...]

Fuzzes each decoder (default: all: bulk_wire, delta_block, delta_payload, safetensors) for N seconds (default 10; 600 for a
thorough run). What it finds on the way stays in build/fuzz/corpus, where the next run starts; an input that breaks a
decoder is written to build/fuzz and named.

  --no-build    run what is built
  --build-only  build, do not run
  --merge       do not fuzz: shrink the committed corpus and what was found to what reaches new code, and write that to
                tests/fuzz/corpus
EOF
}

seconds=10
build_first=1
run=1
merge=0
decoders=()
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds) [ $# -ge 2 ] || { usage >&2; exit 2; }; seconds=$2; shift ;;
    --no-build) build_first=0 ;;
    --build-only) run=0 ;;
    --merge) merge=1 ;;
    -h | --help) usage; exit 0 ;;
    -*) printf 'tests/fuzz/run.sh: unknown option %s\n' "$1" >&2; usage >&2; exit 2 ;;
    *) decoders+=("$1") ;;
  esac
  shift
done
[ "${#decoders[@]}" -gt 0 ] || decoders=(bulk_wire delta_block delta_payload safetensors)

cd "$root"
if [ "$build_first" = 1 ]; then
  cmake --preset fuzz
  cmake --build --preset fuzz --target fuzzers
fi
[ "$run" = 1 ] || exit 0

for decoder in "${decoders[@]}"; do
  program="$build/bin/fuzz_$decoder"
  committed="$here/corpus/$decoder"
  found="$build/corpus/$decoder"
  mkdir -p "$found" "$committed"
  if [ "$merge" = 1 ]; then
    shrunk=$(mktemp -d "$build/merge.XXXXXX")
    "$program" -merge=1 -max_len=16384 "$shrunk" "$committed" "$found"
    rm -f "$committed"/*
    cp "$shrunk"/* "$committed"
    rm -rf "$shrunk"
  else
    # The choices and headers are in the first bytes: longer inputs find less a second.
    "$program" -max_total_time="$seconds" -max_len=16384 -rss_limit_mb=1024 -timeout=10 -print_final_stats=1 \
      -artifact_prefix="$build/" "$found" "$committed"
  fi
done

#!/usr/bin/env bash
# Sets up, builds and runs the tests; the last thing printed is ctest's own summary.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  cat <<EOF
Usage: tests/run.sh [--preset NAME] [--label LABEL] [--all] [--no-setup] [--jobs N] [--help] [-- CTEST ARGUMENTS...]

  --preset NAME  configure preset: release (default), dev, asan or tsan
  --label LABEL  only tests with this label: unit, property, e2e, ... (a regular expression)
  --all          with the tests labelled "long", which are left out otherwise
  --no-setup     do not call deploy/setup.sh
  --jobs N       parallel compilations and tests (default: number of processors, $(nproc) here)

What follows -- goes to ctest, for example: tests/run.sh -- -R delta_codec -V
EOF
}

preset=release
jobs=$(nproc)
setup=1
selection=(--label-exclude '^long$')
label=()
extra=()

need_value() {  # OPTION [VALUE]
  [ $# -ge 2 ] || { printf 'tests/run.sh: %s needs a value\n' "$1" >&2; exit 2; }
}

while [ $# -gt 0 ]; do
  case "$1" in
    --preset) need_value "$@"; preset=$2; shift ;;
    --label) need_value "$@"; label=(--label-regex "$2"); shift ;;
    --jobs) need_value "$@"; jobs=$2; shift ;;
    --all) selection=() ;;
    --no-setup) setup=0 ;;
    -h | --help) usage; exit 0 ;;
    --) shift; extra=("$@"); break ;;
    *) printf 'tests/run.sh: unknown option %s (arguments for ctest go after --)\n' "$1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

cd "$root"
setup_arguments=(--tests)
[ "$preset" != tsan ] || setup_arguments+=(--no-worker)
[ "$setup" = 0 ] || deploy/setup.sh "${setup_arguments[@]}"

# LibTorch's OpenMP threads sleep instead of spinning while tests share the processors.
export OMP_WAIT_POLICY=passive
cmake --preset "$preset"
cmake --build --preset "$preset" --parallel "$jobs"
ctest --preset "$preset" --parallel "$jobs" "${selection[@]}" "${label[@]}" "${extra[@]}" < /dev/null

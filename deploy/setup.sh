#!/usr/bin/env bash
# Installs what AutoLoCo is built with on Debian 12, Ubuntu 24.04 or newer, and brings LibTorch if there is none.
# Safe to run twice: what is there already is left alone, and a second run takes a second.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=deploy/shell.sh
. "$here/shell.sh"
readonly CMAKE_VERSION_MIN=3.25

readonly BUILD_PACKAGES=(build-essential ca-certificates ccache cmake curl git ninja-build pkg-config python3)
readonly LIBRARY_PACKAGES=(libabsl-dev libgmock-dev libgrpc++-dev libgtest-dev libhwy-dev libprotobuf-dev libsqlite3-dev
                           libxxhash-dev libyaml-cpp-dev libzstd-dev nlohmann-json3-dev prometheus-cpp-dev protobuf-compiler
                           protobuf-compiler-grpc)
readonly WORKER_PACKAGES=(python3-pip)  # brings LibTorch
readonly DEV_PACKAGES=(clang clang-format clang-tidy gdb libclang-rt-dev)

with_worker=1
with_dev=0
with_tests=0

usage() {
  cat <<EOF
Usage: deploy/setup.sh [--no-worker] [--tests] [--dev] [--help]

Installs, on Debian 12 / Ubuntu 24.04 or newer, what AutoLoCo is built with. Run it as yourself: it calls sudo for
apt-get alone. Whatever is there already is left as it is.

  --no-worker  for the server and the operator's command only: no LibTorch
  --tests      also what the tests call: promtool (the Prometheus package; its service is kept from starting)
  --dev        also what the asan/fuzz/tidy presets and formatting need: ${DEV_PACKAGES[*]}
  --help       this text

Packages:
  ${BUILD_PACKAGES[*]}
  ${LIBRARY_PACKAGES[*]}
  ${WORKER_PACKAGES[*]} (not with --no-worker)

LibTorch 2.7 or newer is taken from LIBTORCH (a folder with lib/ and include/), else from python3's torch, else
deploy/libtorch.sh brings 2.11.0 (CPU) into the cache folder; deploy/README.md has the details.
EOF
}

parse_arguments() {
  local argument
  for argument in "$@"; do
    case "$argument" in
      --no-worker) with_worker=0 ;;
      --tests) with_tests=1 ;;
      --dev) with_dev=1 ;;
      -h | --help) usage; exit 0 ;;
      *) say "unknown option $argument"; usage >&2; exit 2 ;;
    esac
  done
}

# Fills missing[] with the wanted packages that are not installed.
find_missing_packages() {
  local wanted=("${BUILD_PACKAGES[@]}" "${LIBRARY_PACKAGES[@]}") package
  [ "$with_worker" = 0 ] || wanted+=("${WORKER_PACKAGES[@]}")
  [ "$with_dev" = 0 ] || wanted+=("${DEV_PACKAGES[@]}")
  if [ "$with_tests" = 1 ]; then
    wanted+=(iproute2)
    command -v promtool > /dev/null || wanted+=(prometheus)
  fi
  missing=()
  command -v dpkg-query > /dev/null || fail "this is no Debian or Ubuntu; install the counterparts of: ${wanted[*]}"
  local installed
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Abbrev}\n' "${wanted[@]}" 2> /dev/null || true)
  for package in "${wanted[@]}"; do
    grep -qxF "$package ii " <<< "$installed" || missing+=("$package")
  done
}

# The tests call promtool; nobody asked for a Prometheus server on this machine.
keep_prometheus_from_starting() {
  local unit=/etc/systemd/system/prometheus.service
  if [[ " ${missing[*]} " == *" prometheus "* ]] && [ -d /run/systemd/system ] && [ ! -e "$unit" ]; then
    say "masking prometheus.service (undo: systemctl unmask prometheus)"
    as_root ln -s /dev/null "$unit"
  fi
}

install_packages() {
  find_missing_packages
  if [ "${#missing[@]}" = 0 ]; then
    say "all packages are installed"
    return
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  know_packages "${missing[@]}"
  keep_prometheus_from_starting
  local install=(install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}")
  apt_get "${install[@]}" > "$log" 2>&1 && return
  say "that failed; refreshing the package lists and trying once more"
  as_root env DEBIAN_FRONTEND=noninteractive dpkg --configure -a >> "$log" 2>&1 || true
  apt_get update -qq >&2
  apt_get "${install[@]}" > "$log" 2>&1 || { tail -n 20 "$log" >&2; fail "apt-get could not install the packages"; }
}

check_cmake() {
  local version
  version=$(cmake --version | awk 'NR == 1 {print $3}')
  [ "$(printf '%s\n' "$CMAKE_VERSION_MIN" "$version" | sort -V | head -n 1)" = "$CMAKE_VERSION_MIN" ] ||
    fail "CMake $version is too old, $CMAKE_VERSION_MIN or newer is needed (Debian 12 and Ubuntu 24.04 have it)"
}

provide_libtorch() {
  local probe=(cmake -P "$here/../cmake/ProbeLibTorch.cmake") found
  if found=$(as_builder "${probe[@]}" 2>&1); then
    say "${found##*-- Found }"
    return
  fi
  if [ -n "${LIBTORCH:-}" ]; then
    printf '%s\n' "$found" >&2
    fail "LIBTORCH is set to a folder that cannot be used (see above)"
  fi
  as_builder "$here/libtorch.sh"
  found=$(as_builder "${probe[@]}" 2>&1) || { printf '%s\n' "$found" >&2; fail "the LibTorch brought cannot be used"; }
}

main() {
  parse_arguments "$@"
  log=$(mktemp "${TMPDIR:-/tmp}/autoloco-setup.XXXXXX")
  trap 'rm -f "$log"' EXIT
  install_packages
  check_cmake
  [ "$with_worker" = 0 ] || provide_libtorch
  say "ready"
}

main "$@"

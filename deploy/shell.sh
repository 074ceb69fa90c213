# shellcheck shell=bash
# What the scripts of deploy/ share; sourced, with set -euo pipefail in force. Messages go to standard error.

script_name=$(basename "$0" .sh)

say() { printf '%s: %s\n' "$script_name" "$*" >&2; }
fail() { say "$@"; exit 1; }

# Cache folder outside the source tree, shared by all clones (cmake/FindLibTorch.cmake looks in the same place).
cache_folder() {
  printf '%s\n' "${AUTOLOCO_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:?set HOME or AUTOLOCO_CACHE_DIR}/.cache}/autoloco}"
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    command -v sudo > /dev/null || fail "root is needed to install packages: run as root, or install sudo"
    sudo "$@"
  fi
}

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" < /dev/null
}

# Refreshes apt's lists if it does not know a version of every package named.
know_packages() {
  if [ "$(apt-cache policy "$@" 2> /dev/null | grep -c 'Candidate: [0-9]')" != $# ]; then
    say "refreshing the package lists"
    apt_get update -qq >&2
  fi
}

# Runs as the one who builds: under "sudo deploy/setup.sh" the cache folder belongs to who called sudo.
as_builder() {
  if [ "$(id -u)" = 0 ] && [ -n "${SUDO_USER:-}" ] && [ "$SUDO_USER" != root ]; then
    sudo -E -H -u "$SUDO_USER" "$@"
  else
    "$@"
  fi
}

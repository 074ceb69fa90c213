#!/usr/bin/env bash
# Brings real English text to train on: the GNU Collaborative International Dictionary of English, 40 MB of plain text,
# out of Debian's package dict-gcide. Prints the path of the text file.
#
# The package is unpacked into the cache folder and not installed: installing it would start a dictionary server.
# apt checks its signature. Safe to run twice and to interrupt: the file is renamed into place when complete.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=deploy/shell.sh
. "$here/shell.sh"

readonly PACKAGE=dict-gcide
readonly MEMBER=usr/share/dictd/gcide.dict.dz

usage() {
  cat <<EOF
Usage: deploy/dictionary.sh [--help]

Brings the text of the dictionary $PACKAGE (40 MB) into the cache folder ($(cache_folder)),
unless it is there already, and prints the path of the text file.
EOF
}

bring() {  # DESTINATION, with $work to work in
  if [ -r "/$MEMBER" ]; then
    gzip -dc < "/$MEMBER" > "$work/text"
  else
    know_packages "$PACKAGE"
    say "downloading $PACKAGE (14 MB)"
    (cd "$work" && apt-get -qq download "$PACKAGE" < /dev/null >&2) || fail "apt-get could not download $PACKAGE"
    dpkg-deb --extract "$work"/*.deb "$work/package"
    gzip -dc < "$work/package/$MEMBER" > "$work/text"
  fi
  mv "$work/text" "$1"
}

main() {
  case "${1:-}" in
    "") ;;
    -h | --help) usage; return 0 ;;
    *) usage >&2; return 2 ;;
  esac
  local target
  target=$(cache_folder)/gcide.txt
  if [ ! -s "$target" ]; then
    mkdir -p "$(dirname "$target")"
    work=$(mktemp -d "$(dirname "$target")/.dictionary.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    bring "$target"
  fi
  printf '%s\n' "$target"
}

main "$@"

#!/usr/bin/env bash
# The whole system once, on this machine: sets up, builds, starts a server and two workers on loopback, trains a small
# language model on real English text and shows what came of it. The last line of standard output is one JSON object.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
# shellcheck source=deploy/shell.sh
. "$here/shell.sh"

usage() {
  cat <<EOF
Usage: deploy/quickstart.sh [--out FOLDER] [--seed N] [--steps N] [--no-setup] [--help]

  --out FOLDER  where logs and model go (default: a new folder under build/quickstart)
  --seed N      seed of the initial parameters and of the data order (default 1)
  --steps N     inner steps of each worker (default 600, 24 rounds of 25)
  --no-setup    do not install or build anything

Takes about four minutes on two cores once everything is built. Two runs with the same arguments end with the same
digest.
EOF
}

out=""
seed=1
steps=600
setup=1
while [ $# -gt 0 ]; do
  case "$1" in
    --out | --seed | --steps)
      [ $# -ge 2 ] || { say "$1 needs a value"; exit 2; }
      case "$1" in
        --out) out=$2 ;;
        --seed) seed=$2 ;;
        --steps) steps=$2 ;;
      esac
      shift ;;
    --no-setup) setup=0 ;;
    -h | --help) usage; exit 0 ;;
    *) say "unknown option $1"; usage >&2; exit 2 ;;
  esac
  shift
done

readonly bin=$root/build/release/bin
readonly worker_names=(east west)
# Workers share the processors: one thread each, and LibTorch's idle threads sleep instead of spinning.
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1

build() {
  "$here/setup.sh"
  (cd "$root" && cmake --preset release && cmake --build --preset release --target autoloco-server autoloco-worker autoloco) >&2
}

# Whatever happens, nothing is left running.
stop_all() {
  trap - EXIT
  [ -z "$(jobs -p)" ] || kill $(jobs -p) 2> /dev/null || true
  wait 2> /dev/null || true
}

explain_failure() {  # NAME
  say "$1 ended early; the end of its log ($out/$1.log):"
  tail -n 20 "$out/$1.log" >&2
  exit 1
}

start_server() {
  "$bin/autoloco-server" --config "$here/examples/quickstart.yaml" --run.seed "$seed" --run.total_inner_steps "$steps" \
    --state-dir "$out/state" --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0 --no-exit-when-done \
    > "$out/server.log" 2>&1 &
  server_pid=$!
  local waited
  for ((waited = 0; waited < 300; waited++)); do
    address=$(sed -n 's/.* serving .*listen=\([^ ]*\).*/\1/p' "$out/server.log")
    [ -z "$address" ] || return 0
    kill -0 "$server_pid" 2> /dev/null || explain_failure server
    sleep 0.1
  done
  say "the server did not say within 30 s where it listens"
  exit 1
}

start_workers() {
  local name
  for name in "${worker_names[@]}"; do
    "$bin/autoloco-worker" --server "$address" --name "$name" --data "$text" --threads 1 --device cpu \
      > "$out/$name.log" 2>&1 &
    worker_pids+=($!)
  done
}

# One line of progress for every version evaluated, until both workers have ended.
watch_run() {
  local shown=0 lines i
  while :; do
    lines=$(sed -n 's/.* evaluation .*version=\([0-9]*\).* loss=\([^ ]*\).*/\1 \2/p' "$out/server.log")
    while read -r version loss; do
      [ -n "$version" ] && [ "$version" -ge "$shown" ] || continue
      say "version $version: held-out loss $loss nats a byte ($SECONDS s)"
      shown=$((version + 1))
    done <<< "$lines"
    [ -n "$(jobs -pr | grep -xF -e "${worker_pids[0]}" -e "${worker_pids[1]}")" ] || break
    kill -0 "$server_pid" 2> /dev/null || explain_failure server
    sleep 1
  done
  for i in 0 1; do
    wait "${worker_pids[$i]}" || explain_failure "${worker_names[$i]}"
  done
}

[ "$setup" = 0 ] || build
[ -n "$out" ] || out=$root/build/quickstart/$(date +%Y%m%d-%H%M%S)
mkdir -p "$out"
out=$(cd "$out" && pwd)
[ ! -e "$out/state" ] || { say "$out holds a run already; give another --out"; exit 2; }
text=$("$here/dictionary.sh")

trap stop_all EXIT
trap 'exit 130' INT TERM
SECONDS=0
worker_pids=()
start_server
say "server on $address, logs in $out; workers ${worker_names[*]} train on $text"
start_workers
watch_run
seconds=$SECONDS

"$bin/autoloco" status --server "$address" --json > "$out/status.json"
kill -TERM "$server_pid"
wait "$server_pid" || explain_failure server
model=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["checkpoint"])' "$out/status.json")
"$bin/autoloco-worker" generate --model "$model" --prompt "Light " --tokens 240 --temperature 0.8 --seed "$seed" \
  > "$out/sample.txt"
python3 "$here/quickstart_report.py" "$out" "$seconds"

#!/usr/bin/env bash
# Which LibTorch cmake/FindLibTorch.cmake takes, which it refuses and with what reason, on folders made up for the test.
#   find_libtorch_test.sh ROOT
set -euo pipefail

root=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset LIBTORCH PYTHONPATH
export AUTOLOCO_CACHE_DIR=$work/cache HOME=$work
mkdir -p "$work/bin" "$work/none"

# Libraries with and without a C++11 ABI symbol, and one that needs a library which is not there.
printf 'extern "C" int Old() { return 1; }\n' > "$work/old.cc"
printf 'extern "C" int NeedsAbsent() { return 1; }\n' > "$work/needs.cc"
printf '#include <string>\nstd::string Name() { return "x"; }\n' > "$work/new.cc"
compile() { c++ -shared -fPIC -o "$@"; }
compile "$work/new.so" "$work/new.cc"
compile "$work/old.so" "$work/old.cc"
compile "$work/libabsent.so" "$work/old.cc"
compile "$work/needs.so" "$work/needs.cc" -Wl,--no-as-needed -L"$work" -labsent

# fake FOLDER VERSION LIBC10: a folder in the shape of a LibTorch
fake() {
  mkdir -p "$1/lib" "$1/include/ATen" "$1/include/torch/csrc/api/include/torch"
  touch "$1/include/ATen/ATen.h" "$1/include/torch/csrc/api/include/torch/torch.h"
  printf "__version__ = '%s'\n" "$2" > "$1/version.py"
  cp "$3" "$1/lib/libc10.so"
  cp "$work/new.so" "$1/lib/libtorch_cpu.so"
}

# expect STATUS TEXT [NAME=VALUE...]: the probe ends with STATUS and says TEXT
expect() {
  local status=0 output
  output=$(env "${@:3}" cmake -P "$root/cmake/ProbeLibTorch.cmake" 2>&1 | tr -s ' \n' ' '; exit "${PIPESTATUS[0]}") || status=$?
  if { [ "$1" = 0 ] && [ "$status" != 0 ]; } || { [ "$1" != 0 ] && [ "$status" = 0 ]; } || [[ "$output" != *"$2"* ]]; then
    printf 'FAILED: expected status %s and "%s" with %s; got %s and:\n%s\n' "$1" "$2" "${*:3}" "$status" "$output"
    exit 1
  fi
}

# A python3 that knows no torch, whatever this machine has; with FAKE_TORCH it knows that one.
cat > "$work/bin/python3" <<'EOF'
#!/bin/sh
[ -n "$FAKE_TORCH" ] && echo "$FAKE_TORCH" || exit 1
EOF
chmod +x "$work/bin/python3"
export PATH=$work/bin:$PATH FAKE_TORCH=

fake "$work/good" 2.9.1 "$work/new.so"
fake "$work/early" 2.6.0 "$work/new.so"
fake "$work/abi" 2.8.0 "$work/old.so"
fake "$work/incomplete" 2.8.0 "$work/new.so"
cp "$work/needs.so" "$work/incomplete/lib/libtorch_cpu.so"
fake "$work/headers" 2.6.0 "$work/new.so"
mkdir -p "$work/headers/include/torch/headeronly"
printf '#define TORCH_VERSION_%s\n' 'MAJOR 2' 'MINOR 10' 'PATCH 3' > "$work/headers/include/torch/headeronly/version.h"
fake "$work/cuda" 2.8.0 "$work/new.so"
cp "$work/new.so" "$work/cuda/lib/libtorch_cuda.so"
cp "$work/new.so" "$work/cuda/lib/libc10_cuda.so"
cp -r "$work/cuda" "$work/cuda_incomplete"
cp "$work/needs.so" "$work/cuda_incomplete/lib/libtorch_cuda.so"

expect 1 "No usable LibTorch found"
expect 1 "it has no include/ATen/ATen.h" LIBTORCH="$work/none"
expect 1 "it is version 2.6.0, and 2.7 or newer is needed" LIBTORCH="$work/early"
expect 1 "pre-C++11 ABI" LIBTORCH="$work/abi"
expect 1 "libabsent.so" LIBTORCH="$work/incomplete"
expect 0 "Found LibTorch 2.9.1 (CUDA OFF): $work/good" LIBTORCH="$work/good"
expect 0 "Found LibTorch 2.10.3 (CUDA OFF): $work/headers" LIBTORCH="$work/headers"
expect 0 "Found LibTorch 2.8.0 (CUDA ON): $work/cuda" LIBTORCH="$work/cuda"
expect 0 "used without CUDA: libabsent.so not found" LIBTORCH="$work/cuda_incomplete"
expect 0 "Found LibTorch 2.9.1 (CUDA OFF): $work/good" FAKE_TORCH="$work/good"
expect 1 "$work/early is passed over: it is version 2.6.0" FAKE_TORCH="$work/early"
fake "$work/cache/libtorch-2.11.0-cpu" 2.11.0 "$work/new.so"
expect 0 "Found LibTorch 2.11.0 (CUDA OFF): $work/cache" FAKE_TORCH="$work/early"
expect 0 "Found LibTorch 2.9.1" FAKE_TORCH="$work/good"
expect 0 "Found LibTorch 2.8.0" FAKE_TORCH="$work/good" LIBTORCH="$work/cuda"
expect 1 "cannot be used" LIBTORCH="$work/early"
echo "all cases as expected"

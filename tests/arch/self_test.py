#!/usr/bin/env python3
"""Plants one breach of each rule in a small clean tree, and a few in a copy of the real one: each must be found.

    self_test.py ROOT
"""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from check_tree import breaches_of  # noqa: E402
from tree import cpp_functions  # noqa: E402


def header(path, *lines):
    guard = "AUTOLOCO_" + path.upper().replace("/", "_").replace(".", "_") + "_"
    return "\n".join(["// What this is.", f"#ifndef {guard}", f"#define {guard}", *lines, f"#endif  // {guard}", ""])


def clean_tree(layer_table):
    files = {
        "cmake/AutolocoTargets.cmake": layer_table,
        "common/base/CMakeLists.txt": "autoloco_library(autoloco_base LAYER base SRCS clock.cc)\n",
        "common/base/clock.h": header("common/base/clock.h", "class Clock;"),
        "common/base/clock.cc": '#include "common/base/clock.h"\nlong Now() { return std::chrono::system_clock::now(); }\n',
        "common/base/ids.h": header("common/base/ids.h", "#include <string>"),
        "common/tensor/layout.h": header("common/tensor/layout.h", '#include "common/base/ids.h"'),
        "server/core/CMakeLists.txt": "autoloco_library(autoloco_server_core LAYER server_core SRCS\n  machine.cc)\n",
        "server/core/machine.h": header("server/core/machine.h", "#include <vector>", '#include "common/tensor/layout.h"'),
        "server/core/machine.cc": '#include "server/core/machine.h"\n// LOG( and rand() may be spoken of.\n'
                                  'const char* kText = "std::function, system_clock";\nint operand(int a) { return a; }\n',
        "server/rpc/CMakeLists.txt": "autoloco_library(autoloco_server_rpc LAYER server SRCS service.cc)\n",
        "server/rpc/service.cc": '#include <grpcpp/grpcpp.h>\n#include "autoloco/v1/a.pb.h"\n#include "server/core/machine.h"\n',
        "worker/train/CMakeLists.txt": "autoloco_library(autoloco_worker_torch LAYER worker_train SRCS torch_trainer.cc)\n",
        "worker/train/torch_trainer.cc": '#include <torch/torch.h>\n#include "worker/train/trainer.h"\n',
        "worker/train/trainer.h": header("worker/train/trainer.h", "class Trainer;"),
        "tests/unit/server/core/CMakeLists.txt": "autoloco_test(machine_test LABEL unit SRCS machine_test.cc)\n",
        "tests/unit/server/core/machine_test.cc": '#include "server/core/machine.h"\nTEST(Machine, Runs) { EXPECT_EQ(1, 1); }\n',
    }
    return files


def long_function(opening):
    return opening + " {\n" + "  step();\n" * 70 + "}\n"


# (rule, file, text appended to it or the whole file if it is new)
def plants():
    new_header = header("server/core/extra.h")
    return [
        ("layer", "common/tensor/layout.h", '#include "common/codec/delta_codec.h"\n'),
        ("layer", "common/tensor/layout.h", '#include "server/core/machine.h"\n'),
        ("layer", "common/base/clock.cc", "#include <grpcpp/grpcpp.h>\n"),
        ("layer", "server/rpc/service.cc", '#include "tests/support/fake.h"\n'),
        ("layer", "worker/train/torch_trainer.cc", '#include "autoloco/v1/run_config.pb.h"\n'),
        ("layer", "server/strange.h", header("server/strange.h", '#include "worker/core/machine.h"')),
        ("layer", "common/codec/a.h", header("common/codec/a.h", '#include "autoloco/v1/a.pb.h"')),
        ("layer", "common/novel/a.h", header("common/novel/a.h")),
        ("sides", "tests/unit/server/core/machine_test.cc", '#include "worker/train/trainer.h"\n'),
        ("core", "server/core/machine.h", '#include "common/base/clock.h"\n'),
        ("core", "common/tensor/layout.h", '#include "common/base/clock.h"\n'),  # comes in by another header
        ("core", "server/core/machine.cc", "#include <thread>\n"),
        ("core", "server/core/machine.cc", "  #  include <unordered_map>\n"),
        ("core", "server/core/machine.cc", "#include <sys/socket.h>\n"),
        ("core", "server/core/machine.cc", '#include "absl/time/clock.h"\n'),
        ("core", "server/core/machine.cc", '#include "autoloco/v1/a.pb.h"\n'),
        ("torch", "server/rpc/service.cc", "#include <ATen/ATen.h>\n"),
        ("torch", "worker/train/trainer.h", "#include <torch/torch.h>\n"),
        ("torch", "worker/train/trainer.h", '#include "autoloco/v1/a.pb.h"\n'),  # meets torch in torch_trainer.cc
        ("file-length", "server/core/machine.cc", "// line\n" * 700),
        ("file-length", "deploy/long.sh", "true\n" * 701),
        ("function-length", "server/core/machine.cc", long_function("int Machine::Step(int now) const")),
        ("function-length", "server/core/machine.cc", long_function("Machine::Machine() : a_{1}, b_{2}")),
        ("function-length", "server/core/machine.cc", "namespace a {\nclass B {\n public:\n" + long_function("  B() : c_(1)") + "};\n}\n"),
        ("function-length", "tests/unit/server/core/machine_test.cc", long_function("TEST(Machine, IsLong)")),
        ("function-length", "deploy/long.sh", long_function("bring()")),
        ("function-length", "deploy/long.py", "def bring():\n" + "    step()\n" * 70),
        ("banned-word", "server/core/machine.cc", "std::function<void()> callback;\n"),
        ("banned-word", "server/core/machine.cc", "auto now = std::chrono::system_clock::now();\n"),
        ("banned-word", "server/rpc/service.cc", 'const char* home = std::getenv("HOME");\n'),
        ("banned-word", "server/rpc/service.cc", "int dice = rand() % 6;\n"),
        ("banned-word", "server/rpc/service.cc", "absl::Mutex mutex;\n"),
        ("banned-word", "server/rpc/service.cc", 'void F() { LOG(INFO) << "started"; }\n'),
        ("banned-word", "server/rpc/service.cc", "void F() { CHECK_EQ(1, 2); }\n"),
        ("banned-word", "tests/unit/server/core/machine_test.cc", "void F() { std::this_thread::sleep_for(second); }\n"),
        ("banned-word", "tests/unit/server/core/machine_test.cc", "void F() { usleep(1); }\n"),
        ("open-end", "server/rpc/service.cc", "// TO" "DO: the rest\n"),
        ("header-guard", "server/core/extra.h", new_header.replace("EXTRA", "OTHER")),
        ("top-comment", "server/core/extra.h", new_header.split("\n", 1)[1]),
        ("unbuilt", "server/core/forgotten.cc", "int forgotten = 1;\n"),
        ("unbuilt", "proto/autoloco/v1/forgotten.proto", 'syntax = "proto3";\n'),
        ("twin", "tests/unit/server/core/nothing_test.cc", "TEST(Nothing, Is) {}\n"),
    ]


def write(root, path, text, mode="w"):
    target = os.path.join(root, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, mode, encoding="utf-8") as file:
        file.write(text)


def expect(condition, message):
    if not condition:
        print("FAILED: " + message)
        sys.exit(1)


def test_functions():
    text = ("namespace a {\nint x[] = {1, 2};\nstruct S {\n  int F() const {\n    auto g = [] { return 1; };\n    return g();\n"
            "  }\n  S() : a_{1}, b_{2} {\n    F();\n  }\n};\n#define M(x) { x }\nvoid H(S s = {}, int b = T{1}) {\n"
            "  if (a) {\n  }\n}\ntemplate <class T>\nauto I(T t) -> std::vector<T> {\n}\n}  // namespace a\n")
    expect(cpp_functions(text) == [(4, 7), (8, 10), (13, 16), (17, 19)], f"functions are at {cpp_functions(text)}")


def test_plants(real_root):
    with open(os.path.join(real_root, "cmake", "AutolocoTargets.cmake"), encoding="utf-8") as file:
        clean = clean_tree(file.read())
    with tempfile.TemporaryDirectory() as root:
        for path, text in clean.items():
            write(root, path, text)
        breaches, _ = breaches_of(root)
        expect(not breaches, f"the clean tree has breaches: {breaches}")
        for rule, path, text in plants():
            write(root, path, text, "a")
            found = {breach[2] for breach in breaches_of(root)[0]}
            expect(rule in found, f"a breach of '{rule}' in {path} was not found (found {found or 'nothing'}):\n{text[:200]}")
            if path in clean:
                write(root, path, clean[path])
            else:
                os.remove(os.path.join(root, path))


def test_real_tree(real_root):
    """The command itself, on a copy of the tree with one forbidden include planted."""
    with tempfile.TemporaryDirectory() as root:
        for folder in ("cmake", "common", "proto", "server", "worker", "tests"):
            shutil.copytree(os.path.join(real_root, folder), os.path.join(root, folder))
        write(root, "server/core/round_machine.h", '#include "worker/train/trainer.h"\n', "a")
        command = [sys.executable, os.path.join(HERE, "check_tree.py"), root]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        expect(result.returncode == 1, f"exit code {result.returncode} for a planted include")
        expect("server/core/round_machine.h" in result.stdout, f"the planted include is not named:\n{result.stdout}")


def main():
    root = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", ".."))
    test_functions()
    test_plants(root)
    test_real_tree(root)
    print(f"{len(plants())} planted breaches found")


if __name__ == "__main__":
    main()

"""Who may include what: the layers of cmake/AutolocoTargets.cmake, the pure cores, LibTorch apart from protobuf."""
import re

from tree import includes_of

_LAYER_LINE = re.compile(r"^set\(AUTOLOCO_LAYER_(\w+)\s+([\w\s]+)\)", re.M)
_TORCH = re.compile(r"(?:torch|ATen|c10|caffe2)/")
_PROTOBUF = re.compile(r"google/protobuf/|.*\.pb\.h$")
_GRPC = re.compile(r"grpc(?:pp)?/|.*\.grpc\.pb\.h$|prometheus/")

# A core is a function of its events: nothing that could tell time, wait, speak or remember elsewhere.
CORE_STANDARD_HEADERS = frozenset(
    "algorithm array bit cassert cfloat cinttypes climits cmath compare concepts cstddef cstdint cstring deque "
    "functional initializer_list iterator limits list map memory new numeric optional queue ratio set span stack string "
    "string_view tuple type_traits utility variant vector".split())
CORE_ABSL_HEADERS = re.compile(
    r"absl/(?:status|strings|types|numeric|algorithm|base/(?:attributes|macros|optimization)|container/inlined_vector"
    r"|container/btree|functional/overload|memory|meta|time/time\.h|utility)")
CORE_PROJECT_HEADERS = re.compile(r"common/(?:base|tensor)/")
CORE_FORBIDDEN_PROJECT_HEADERS = re.compile(r"common/base/(?:clock|mutex|log|thread|file|io|socket|signal|subprocess)\w*\.h")


def layers_of(tree):
    """Maps a layer to the set of layers it may use, as CMake has it."""
    return {name: set(allowed.split())
            for name, allowed in _LAYER_LINE.findall(tree.files.get("cmake/AutolocoTargets.cmake", ""))}


def layer_of(path):
    """Layer of a project file or of an include, None where no layer applies (tests, system headers)."""
    parts = path.split("/")
    if path.startswith("autoloco/"):
        return "proto"
    if parts[0] == "common" and len(parts) > 2:
        return parts[1]
    if parts[0] in ("server", "worker"):
        inner = {"server": ("core", "kernels", "runtime"), "worker": ("core", "data", "train", "runtime")}[parts[0]]
        return parts[0] + "_" + parts[1] if len(parts) > 2 and parts[1] in inner else parts[0]
    return None


def check_layers(tree):
    layers = layers_of(tree)
    if not layers:
        yield "cmake/AutolocoTargets.cmake", 1, "layer", "the layer table was not found"
    for path in tree.cpp():
        layer = layer_of(path)
        if layer is None:
            continue
        allowed = layers.get(layer)
        if allowed is None:
            yield path, 1, "layer", f"layer '{layer}' is not in cmake/AutolocoTargets.cmake"
            continue
        for line, included, _ in includes_of(tree.files[path]):
            target = "proto" if _PROTOBUF.match(included) else "rpc" if _GRPC.match(included) else layer_of(included)
            if included.startswith("prometheus/"):
                target = layer if layer in ("server", "worker", "server_runtime", "worker_runtime") else "rpc"
            if target is not None and target not in allowed:
                yield path, line, "layer", f"layer {layer} may not include {included} (layer {target})"
            if included.startswith("tests/"):
                yield path, line, "layer", f"{included}: the product may not include tests"


def check_sides(tree):
    """server/ and worker/ stay apart; the unit tests of each as well."""
    for path in tree.cpp():
        side = re.match(r"(?:tests/unit/)?(server|worker)/", path)
        if not side:
            continue
        other = {"server": "worker/", "worker": "server/"}[side.group(1)]
        for included, through in tree.closure(path).items():
            if included.startswith(other):
                yield path, 1, "sides", f"server/ and worker/ never include each other: {included} comes in by {through}"


def check_core(tree):
    for path in tree.cpp():
        core = re.match(r"(server|worker)/core/", path)
        if not core:
            continue
        for line, included, quoted in includes_of(tree.files[path]):
            own = included.startswith(core.group(0))
            if quoted and "/" in included:
                allowed = own or CORE_PROJECT_HEADERS.match(included) or CORE_ABSL_HEADERS.match(included)
            else:
                allowed = included in CORE_STANDARD_HEADERS
            if not allowed:
                yield path, line, "core", f"a core may not include {included} (it has no clock, thread, file, socket, proto, torch or log)"
        for included, through in tree.closure(path).items():
            if CORE_FORBIDDEN_PROJECT_HEADERS.match(included):
                yield path, 1, "core", f"a core may not see {included}, which comes in by {through}"


def check_torch(tree):
    for path in tree.cpp():
        closure = tree.closure(path)
        torch = [name for name in closure if _TORCH.match(name)]
        if not torch:
            continue
        if not path.startswith(("worker/train/torch_", "tests/")):
            yield path, 1, "torch", f"LibTorch's {torch[0]} comes in by {closure[torch[0]]}: only worker/train/torch_* and tests may see it"
        proto = [name for name in closure if _PROTOBUF.match(name) or _GRPC.match(name)]
        if proto:
            yield path, 1, "torch", f"LibTorch ({torch[0]}) and protobuf or gRPC ({proto[0]} by {closure[proto[0]]}) meet in one file"


CHECKS = (check_layers, check_sides, check_core, check_torch)

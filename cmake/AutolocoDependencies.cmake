# Finds every package the tree uses. A missing one stops the configuration with its name and the command that installs
# it; `deploy/setup.sh` installs them all.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# autoloco_require(PACKAGE DEBIAN_PACKAGE [find_package arguments...])
macro(autoloco_require package debian_package)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "AutoLoCo needs ${package}, which was not found. Install it with:\n"
                        "  apt-get install ${debian_package}\n"
                        "or run deploy/setup.sh, which installs everything the project needs.")
  endif()
endmacro()

# autoloco_require_pkg(TARGET PKG_CONFIG_NAME DEBIAN_PACKAGE): imported target PkgConfig::TARGET
macro(autoloco_require_pkg target module debian_package)
  pkg_check_modules(${target} QUIET IMPORTED_TARGET ${module})
  if(NOT ${target}_FOUND)
    message(FATAL_ERROR "AutoLoCo needs ${module}, which was not found. Install it with:\n"
                        "  apt-get install ${debian_package}\n"
                        "or run deploy/setup.sh, which installs everything the project needs.")
  endif()
endmacro()

autoloco_require(Protobuf "libprotobuf-dev protobuf-compiler")
autoloco_require(absl libabsl-dev CONFIG)
autoloco_require(yaml-cpp libyaml-cpp-dev)
autoloco_require(nlohmann_json nlohmann-json3-dev)
autoloco_require_pkg(ZSTD libzstd libzstd-dev)
autoloco_require_pkg(XXHASH libxxhash libxxhash-dev)
autoloco_require_pkg(SQLITE sqlite3 libsqlite3-dev)
autoloco_require_pkg(HWY libhwy libhwy-dev)
if(AUTOLOCO_BUILD_RPC)
  autoloco_require(gRPC "libgrpc++-dev protobuf-compiler-grpc" CONFIG)
  autoloco_require(prometheus-cpp prometheus-cpp-dev CONFIG)
endif()
if(AUTOLOCO_BUILD_TESTS)
  autoloco_require(GTest "libgtest-dev libgmock-dev" CONFIG)
endif()
if(AUTOLOCO_BUILD_WORKER AND NOT AUTOLOCO_SANITIZE MATCHES "thread")
  find_package(LibTorch 2.7)
  if(NOT LibTorch_FOUND)
    message(STATUS "LibTorch not found: autoloco-worker is not built (server and tools are). deploy/setup.sh brings one.")
  endif()
endif()

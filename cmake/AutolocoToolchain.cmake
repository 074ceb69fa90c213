# Compiler settings that hold for the whole tree.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_program(AUTOLOCO_CCACHE ccache)
if(AUTOLOCO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND};-E;env;CCACHE_BASEDIR=${CMAKE_SOURCE_DIR};CCACHE_NOHASHDIR=1;${AUTOLOCO_CCACHE}")
endif()

# Fused multiply-adds only where the source writes std::fma: scalar and SIMD code must agree bit for bit.
add_compile_options(-ffp-contract=off)
if(AUTOLOCO_SANITIZE)
  add_compile_options(-fsanitize=${AUTOLOCO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${AUTOLOCO_SANITIZE})
endif()

add_library(autoloco_warnings INTERFACE)
target_compile_options(autoloco_warnings INTERFACE -Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual
                       -Wcast-qual -Wimplicit-fallthrough
                       $<$<BOOL:${AUTOLOCO_WARNINGS_AS_ERRORS}>:-Werror>
                       $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)

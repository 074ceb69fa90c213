# Finds LibTorch (2.7 or newer, C++11 ABI) and defines the imported target LibTorch::LibTorch.
#
# Looked at, in this order:
#   1. LIBTORCH, a cache variable or environment variable: a folder with lib/ and include/ (an unpacked LibTorch or the
#      torch folder of a Python installation). If it is given and cannot be used, the configuration stops.
#   2. the torch package of python3, found without importing it
#   3. the cache folder that deploy/setup.sh fills: $AUTOLOCO_CACHE_DIR, else $XDG_CACHE_HOME/autoloco, else
#      ~/.cache/autoloco
#
# libtorch_cpu.so and libc10.so are linked by path: libtorch.so would drag in every CUDA library, and the package's own
# TorchConfig.cmake demands a CUDA compiler. CUDA is used when the folder has libtorch_cuda.so and everything it needs.
#
# Also runs in script mode (cmake/ProbeLibTorch.cmake, used by deploy/setup.sh), where it defines no target.
#
# Result: LibTorch_FOUND, LibTorch_VERSION, LibTorch_ROOT_DIR, LibTorch_CUDA (ON or OFF), LibTorch_REASON (why not).
set(LIBTORCH "" CACHE PATH "LibTorch folder (with lib/ and include/); empty: search python3 and the cache folder")
set(_libtorch_cache_name "libtorch-2.11.0-cpu")

# _libtorch_unresolved(OUT LIBRARY): libraries that LIBRARY needs and the loader does not find
function(_libtorch_unresolved out library)
  execute_process(COMMAND ldd "${library}" OUTPUT_VARIABLE text ERROR_QUIET)
  string(REGEX MATCHALL "[^ \t\n]+ => not found" missing "${text}")
  list(TRANSFORM missing REPLACE " => not found" "")
  list(REMOVE_DUPLICATES missing)
  set(${out} "${missing}" PARENT_SCOPE)
endfunction()

# _libtorch_version(OUT DIR): version as written in the headers or version.py, empty if neither says
function(_libtorch_version out dir)
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h torch/version.h)
    if(EXISTS "${dir}/include/${header}")
      file(STRINGS "${dir}/include/${header}" lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
      string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
      list(LENGTH numbers count)
      if(count EQUAL 3)
        list(JOIN numbers "." version)
        set(${out} "${version}" PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
  if(EXISTS "${dir}/version.py")
    file(STRINGS "${dir}/version.py" line REGEX "^__version__")
    if(line MATCHES "([0-9]+\\.[0-9]+\\.[0-9]+)")
      set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
      return()
    endif()
  endif()
  set(${out} "" PARENT_SCOPE)
endfunction()

# _libtorch_inspect(DIR): sets _reason (empty if DIR can be used) and _version
function(_libtorch_inspect dir)
  set(reason "")
  set(version "")
  foreach(file include/ATen/ATen.h include/torch/csrc/api/include/torch/torch.h lib/libtorch_cpu.so lib/libc10.so)
    if(NOT reason AND NOT EXISTS "${dir}/${file}")
      set(reason "it has no ${file}")
    endif()
  endforeach()
  if(NOT reason)
    _libtorch_version(version "${dir}")
    file(STRINGS "${dir}/lib/libc10.so" cxx11_symbols REGEX "cxx11" LIMIT_COUNT 1)
    if(NOT version)
      set(reason "its version can be read neither from torch/version.h nor from version.py")
    elseif(LibTorch_FIND_VERSION AND version VERSION_LESS LibTorch_FIND_VERSION)
      set(reason "it is version ${version}, and ${LibTorch_FIND_VERSION} or newer is needed")
    elseif(NOT cxx11_symbols)
      set(reason "it was built with the pre-C++11 ABI (_GLIBCXX_USE_CXX11_ABI=0), which this compiler does not link")
    else()
      _libtorch_unresolved(missing "${dir}/lib/libtorch_cpu.so")
      if(missing)
        list(JOIN missing ", " missing)
        set(reason "its libtorch_cpu.so needs libraries that are not found: ${missing}")
      endif()
    endif()
  endif()
  set(_reason "${reason}" PARENT_SCOPE)
  set(_version "${version}" PARENT_SCOPE)
endfunction()

# _libtorch_python_dir(OUT): folder of the torch package that python3 would import, empty if there is none
function(_libtorch_python_dir out)
  find_program(AUTOLOCO_PYTHON3 python3)
  mark_as_advanced(AUTOLOCO_PYTHON3)
  set(dir "")
  if(AUTOLOCO_PYTHON3)
    execute_process(
      COMMAND "${AUTOLOCO_PYTHON3}" -c
              "import importlib.util as u; s = u.find_spec('torch'); print(list(s.submodule_search_locations)[0])"
      OUTPUT_VARIABLE dir ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  set(${out} "${dir}" PARENT_SCOPE)
endfunction()

function(_libtorch_cache_dir out)
  if(DEFINED ENV{AUTOLOCO_CACHE_DIR} AND NOT "$ENV{AUTOLOCO_CACHE_DIR}" STREQUAL "")
    set(base "$ENV{AUTOLOCO_CACHE_DIR}")
  elseif(DEFINED ENV{XDG_CACHE_HOME} AND NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
    set(base "$ENV{XDG_CACHE_HOME}/autoloco")
  else()
    set(base "$ENV{HOME}/.cache/autoloco")
  endif()
  set(${out} "${base}/${_libtorch_cache_name}" PARENT_SCOPE)
endfunction()

set(LibTorch_FOUND FALSE)
set(LibTorch_REASON "")
set(LibTorch_ROOT_DIR "")
set(_libtorch_given "${LIBTORCH}")
if(NOT _libtorch_given)
  set(_libtorch_given "$ENV{LIBTORCH}")
endif()
if(_libtorch_given)
  _libtorch_inspect("${_libtorch_given}")
  if(_reason)
    message(FATAL_ERROR "LIBTORCH=${_libtorch_given} cannot be used: ${_reason}.\nGive a LibTorch 2.7 or newer (folder "
                        "with lib/ and include/), or unset LIBTORCH and run deploy/setup.sh, which brings one.")
  endif()
  set(LibTorch_ROOT_DIR "${_libtorch_given}")
  set(LibTorch_VERSION "${_version}")
else()
  _libtorch_python_dir(_libtorch_python)
  _libtorch_cache_dir(_libtorch_cached)
  foreach(_candidate IN ITEMS "${_libtorch_python}" "${_libtorch_cached}")
    if(LibTorch_ROOT_DIR OR NOT _candidate OR NOT IS_DIRECTORY "${_candidate}")
      continue()
    endif()
    _libtorch_inspect("${_candidate}")
    if(_reason)
      string(APPEND LibTorch_REASON "${_candidate}: ${_reason}. ")
      message(STATUS "LibTorch at ${_candidate} is passed over: ${_reason}")
    else()
      set(LibTorch_ROOT_DIR "${_candidate}")
      set(LibTorch_VERSION "${_version}")
    endif()
  endforeach()
endif()

if(LibTorch_ROOT_DIR)
  set(LibTorch_FOUND TRUE)
  get_filename_component(LibTorch_ROOT_DIR "${LibTorch_ROOT_DIR}" REALPATH)
  set(_libtorch_lib "${LibTorch_ROOT_DIR}/lib")
  set(LibTorch_CUDA OFF)
  if(EXISTS "${_libtorch_lib}/libtorch_cuda.so" AND EXISTS "${_libtorch_lib}/libc10_cuda.so")
    _libtorch_unresolved(_libtorch_missing "${_libtorch_lib}/libtorch_cuda.so")
    if(_libtorch_missing)
      list(JOIN _libtorch_missing ", " _libtorch_missing)
      message(STATUS "LibTorch is used without CUDA: ${_libtorch_missing} not found")
    else()
      set(LibTorch_CUDA ON)
    endif()
  endif()
  if(NOT CMAKE_SCRIPT_MODE_FILE AND NOT TARGET LibTorch::LibTorch)
    foreach(_library torch_cpu c10)
      add_library(LibTorch::${_library} SHARED IMPORTED)
      set_target_properties(LibTorch::${_library} PROPERTIES IMPORTED_LOCATION "${_libtorch_lib}/lib${_library}.so"
                                                             IMPORTED_SONAME "lib${_library}.so")
    endforeach()
    add_library(LibTorch::LibTorch INTERFACE IMPORTED)
    # Imported targets' include folders are SYSTEM: no warnings from LibTorch's headers.
    target_include_directories(LibTorch::LibTorch INTERFACE
      "${LibTorch_ROOT_DIR}/include" "${LibTorch_ROOT_DIR}/include/torch/csrc/api/include")
    target_compile_features(LibTorch::LibTorch INTERFACE cxx_std_17)
    target_link_libraries(LibTorch::LibTorch INTERFACE LibTorch::torch_cpu LibTorch::c10)
    target_link_options(LibTorch::LibTorch INTERFACE "LINKER:--allow-shlib-undefined")
    if(LibTorch_CUDA)
      # Nothing refers to these by symbol; their start-up code registers the CUDA kernels, so they must stay linked.
      target_link_libraries(LibTorch::LibTorch INTERFACE
        "-Wl,--push-state,--no-as-needed" "${_libtorch_lib}/libtorch_cuda.so" "${_libtorch_lib}/libc10_cuda.so"
        "-Wl,--pop-state")
    endif()
  endif()
  if(NOT LibTorch_FIND_QUIETLY)
    message(STATUS "Found LibTorch ${LibTorch_VERSION} (CUDA ${LibTorch_CUDA}): ${LibTorch_ROOT_DIR}")
  endif()
elseif(LibTorch_FIND_REQUIRED)
  message(FATAL_ERROR "LibTorch not found. ${LibTorch_REASON}Run deploy/setup.sh, or set LIBTORCH to a folder with one.")
endif()

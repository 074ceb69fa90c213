# Says whether the configuration would find a LibTorch, and which: cmake -P cmake/ProbeLibTorch.cmake
# Exit code 0: found and usable. deploy/setup.sh asks this before it downloads one, so that there is one set of rules.
list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
find_package(LibTorch 2.7 MODULE)
if(NOT LibTorch_FOUND)
  message(FATAL_ERROR "No usable LibTorch found.")
endif()

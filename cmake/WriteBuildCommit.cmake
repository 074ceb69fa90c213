# Writes OUTPUT, the source that says which commit this build is of, when it has changed; empty where SOURCE is no git
# checkout. "-dirty" is appended when tracked files differ from the commit.
#   cmake -D SOURCE=DIR -D OUTPUT=FILE -P WriteBuildCommit.cmake
set(commit "")
find_program(GIT git)
if(GIT)
  execute_process(COMMAND "${GIT}" -C "${SOURCE}" describe --always --dirty --abbrev=12 --exclude=*
                  OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
set(text "#include \"server/build_commit.h\"\n\nnamespace autoloco::server {\n\nconst char kBuildCommit[] = \"${commit}\";\n\n}  // namespace autoloco::server\n")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT "${text}" STREQUAL "${before}")
  file(WRITE "${OUTPUT}" "${text}")
endif()

// Which commit the server was built from; the source is written when it is built (cmake/WriteBuildCommit.cmake).
#ifndef AUTOLOCO_SERVER_BUILD_COMMIT_H_
#define AUTOLOCO_SERVER_BUILD_COMMIT_H_

namespace autoloco::server {

// "1b9f03aa2c41", with "-dirty" where tracked files had changes; empty: not built from a git checkout.
extern const char kBuildCommit[];

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_BUILD_COMMIT_H_

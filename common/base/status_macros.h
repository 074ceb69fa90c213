// Early return on errors for absl::Status and absl::StatusOr; abseil itself has no such macros in the versions that
// distributions carry.
#ifndef AUTOLOCO_COMMON_BASE_STATUS_MACROS_H_
#define AUTOLOCO_COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status of `expression` from the enclosing function unless it is OK.
#define AUTOLOCO_RETURN_IF_ERROR(expression)             \
  do {                                                   \
    absl::Status autoloco_status_ = (expression);        \
    if (!autoloco_status_.ok()) return autoloco_status_; \
  } while (false)

// AUTOLOCO_ASSIGN_OR_RETURN(auto x, F()): declares or assigns `x`, or returns the status of F().
#define AUTOLOCO_ASSIGN_OR_RETURN(lhs, expression) \
  AUTOLOCO_ASSIGN_OR_RETURN_(AUTOLOCO_CONCAT_(autoloco_result_, __LINE__), lhs, expression)
#define AUTOLOCO_ASSIGN_OR_RETURN_(result, lhs, expression) \
  auto result = (expression);                               \
  if (!result.ok()) return std::move(result).status();      \
  lhs = std::move(result).value()
#define AUTOLOCO_CONCAT_(a, b) AUTOLOCO_CONCAT_INNER_(a, b)
#define AUTOLOCO_CONCAT_INNER_(a, b) a##b

#endif  // AUTOLOCO_COMMON_BASE_STATUS_MACROS_H_

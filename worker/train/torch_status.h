// Turns what torch throws into absl::Status, at the border of the torch_*.cc files.
#ifndef AUTOLOCO_WORKER_TRAIN_TORCH_STATUS_H_
#define AUTOLOCO_WORKER_TRAIN_TORCH_STATUS_H_

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace autoloco::worker {

inline absl::Status TorchError(absl::string_view action, const std::string& message, bool out_of_memory) {
  const std::string text = absl::StrCat(std::string(action), ": ", message.substr(0, message.find('\n')));
  return out_of_memory ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

// Runs `body`, which returns absl::Status or absl::StatusOr, and returns its result; what it throws becomes
// RESOURCE_EXHAUSTED (no memory) or INTERNAL, with `action` in front of torch's message.
template <typename Body>
auto CatchTorch(absl::string_view action, Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const c10::OutOfMemoryError& error) {
    return TorchError(action, error.what_without_backtrace(), true);
  } catch (const c10::Error& error) {  // the CPU's allocator throws a plain error
    const std::string message = error.what_without_backtrace();
    return TorchError(action, message, absl::StrContains(message, "not enough memory"));
  } catch (const std::bad_alloc& error) {
    return TorchError(action, error.what(), true);
  } catch (const std::exception& error) {
    return TorchError(action, error.what(), false);
  }
}

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_TRAIN_TORCH_STATUS_H_

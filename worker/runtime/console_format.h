// The words and numbers of the progress line.
#ifndef AUTOLOCO_WORKER_RUNTIME_CONSOLE_FORMAT_H_
#define AUTOLOCO_WORKER_RUNTIME_CONSOLE_FORMAT_H_

#include <string>

#include "absl/time/time.h"
#include "worker/runtime/progress_board.h"

namespace autoloco::worker {

// "842", "12.3k", "4.56M".
std::string ShortNumber(double value);
// "42s", "3m12s", "5h07m", "2d03h".
std::string ShortDuration(absl::Duration duration);
// "[#####.....]" of `width` cells. REQUIRES: width >= 1.
std::string ProgressBar(std::uint64_t done, std::uint64_t target, int width);

// One line without a line feed, at most `columns` characters:
// "round 12 training [#####.....] 13/25  loss 2.345  12.3k tok/s  computing 87%  sent 1.61 bits 7.3 dB
// left 3m12s" (bits a value of the last delta, and what its coding kept of it)
std::string LiveLine(const ProgressNumbers& numbers, int columns);

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_RUNTIME_CONSOLE_FORMAT_H_

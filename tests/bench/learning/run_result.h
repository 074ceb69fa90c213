// What came out of one run of one arm.
#ifndef AUTOLOCO_TESTS_BENCH_LEARNING_RUN_RESULT_H_
#define AUTOLOCO_TESTS_BENCH_LEARNING_RUN_RESULT_H_

#include <cstdint>
#include <vector>

namespace autoloco::bench {

struct RunResult {
  double loss = 0;  // held out, nats a token, at the end; infinite: the run diverged
  std::uint64_t rounds = 0;
  double bytes_per_worker = 0;  // sent and received, mean over the workers
  double worst_jump = 0;        // largest change of the held-out loss from one round to the next, after the warm-up
  double seconds = 0;
  std::vector<std::uint32_t> intervals;
  std::vector<float> losses;  // held out, after each round
};

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_LEARNING_RUN_RESULT_H_

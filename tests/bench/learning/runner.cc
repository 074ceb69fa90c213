#include "tests/bench/learning/runner.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "tests/bench/learning/progress.h"

namespace autoloco::bench {
namespace {

constexpr int kStages = 3;

bool NeedsMomentum(const Arm& arm) { return arm.kind == Method::kOuter && arm.momentum == kTuned; }

int StageOf(const Arm& arm) {
  if (!arm.rounds_of.empty()) return 2;
  return NeedsMomentum(arm) ? 1 : 0;
}

bool IsSweepFor(const Arm& sweep, const Arm& arm) { return sweep.sweep && SameSetting(sweep, arm); }

bool IsRoundsFor(const Arm& source, const Arm& arm) {
  return source.method == arm.rounds_of && IsExact(source) && SameSetting(source, arm);
}

class Runner {
 public:
  Runner(const RunnerOptions& options, const BenchData& data, const std::vector<Arm>& arms, ResultsFile* results)
      : options_(options), data_(data), arms_(arms), results_(results), progress_(TotalSteps()) {}

  absl::StatusOr<std::vector<ArmResults>> Run() {
    for (int stage = 0; stage < kStages; ++stage) AUTOLOCO_RETURN_IF_ERROR(RunStage(stage));
    std::vector<ArmResults> all;
    for (const Arm& arm : arms_) {
      ArmResults line{arm, {}};
      for (std::uint64_t seed = 1; seed <= SeedsOf(arm); ++seed) {
        AUTOLOCO_ASSIGN_OR_RETURN(line.arm, Resolve(arm, seed));
        const RunResult* result = results_->Find(DescribeRun(options_.settings, line.arm, seed));
        if (result == nullptr) return absl::InternalError(absl::StrCat(arm.method, ": a result is missing"));
        line.runs.push_back(*result);
      }
      all.push_back(std::move(line));
    }
    return all;
  }

 private:
  struct Job {
    Arm arm;
    std::uint64_t seed = 0;
    std::string run;
  };

  std::uint64_t SeedsOf(const Arm& arm) const { return std::min(arm.seeds_max, options_.seeds); }

  std::uint64_t StepsOf(const Arm& arm) const {
    return ModelSteps(options_.settings, arm, data_.text->config().workers);
  }

  std::uint64_t TotalSteps() const {
    std::uint64_t steps = 0;
    for (const Arm& arm : arms_) steps += SeedsOf(arm) * StepsOf(arm);
    return steps;
  }

  // The best of the sweep by the mean over its seeds.
  absl::StatusOr<double> TunedMomentum(const Arm& arm) const {
    double best = kTuned;
    double best_loss = 0;
    for (const Arm& sweep : arms_) {
      if (!IsSweepFor(sweep, arm)) continue;
      double loss = 0;
      for (std::uint64_t seed = 1; seed <= SeedsOf(sweep); ++seed) {
        const RunResult* result = results_->Find(DescribeRun(options_.settings, sweep, seed));
        if (result == nullptr) return absl::InternalError(absl::StrCat(sweep.method, ": a result is missing"));
        loss += result->loss / static_cast<double>(SeedsOf(sweep));
      }
      if (best == kTuned || loss < best_loss) {
        best = sweep.momentum;
        best_loss = loss;
      }
    }
    if (best == kTuned) {
      return absl::InvalidArgumentError(absl::StrCat(arm.method, ", ", ShardingName(arm.data), ", ",
                                                     ScheduleName(arm.schedule),
                                                     ": no sweep of the outer momentum for it; give --momentum"));
    }
    return best;
  }

  // The arm with everything it takes from others filled in. REQUIRES: those have run.
  absl::StatusOr<Arm> Resolve(Arm arm, std::uint64_t seed) const {
    if (NeedsMomentum(arm)) {
      AUTOLOCO_ASSIGN_OR_RETURN(arm.momentum, TunedMomentum(arm));
    }
    if (arm.rounds_of.empty()) return arm;
    for (const Arm& source : arms_) {
      if (!IsRoundsFor(source, arm)) continue;
      AUTOLOCO_ASSIGN_OR_RETURN(const Arm resolved, Resolve(source, seed));
      const RunResult* result = results_->Find(DescribeRun(options_.settings, resolved, seed));
      if (result == nullptr || result->rounds == 0) break;
      arm.rounds = result->rounds;
      return arm;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(arm.method, ": ", arm.rounds_of, " has no result for seed ", seed, " to take the rounds from"));
  }

  absl::Status RunStage(int stage) {
    std::vector<Job> jobs;
    std::set<std::string> taken;
    for (const Arm& arm : arms_) {
      if (StageOf(arm) != stage) continue;
      for (std::uint64_t seed = 1; seed <= SeedsOf(arm); ++seed) {
        AUTOLOCO_ASSIGN_OR_RETURN(Arm resolved, Resolve(arm, seed));
        std::string run = DescribeRun(options_.settings, resolved, seed);
        if (results_->Find(run) != nullptr || !taken.insert(run).second) {
          progress_.Skip(StepsOf(arm));
        } else {
          jobs.push_back({std::move(resolved), seed, std::move(run)});
        }
      }
    }
    return RunJobs(jobs);
  }

  absl::Status RunJobs(const std::vector<Job>& jobs) {
    std::atomic<std::size_t> next = 0;
    Mutex mutex;
    absl::Status first_error;
    const auto work = [&] {
      for (std::size_t i = next++; i < jobs.size(); i = next++) {
        const absl::Status status = RunJob(jobs[i]);
        if (status.ok()) continue;
        const MutexLock lock(&mutex);
        first_error.Update(status);
        next = jobs.size();
      }
    };
    std::vector<std::thread> threads;
    for (std::uint32_t i = 1; i < options_.threads; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    return first_error;
  }

  absl::Status RunJob(const Job& job) {
    std::uint64_t reported = 0;
    const auto progress = [&](std::uint64_t steps) {
      reported += steps;
      progress_.Add(steps);
    };
    AUTOLOCO_ASSIGN_OR_RETURN(const RunResult result,
                              SimulateRun(options_.settings, data_, job.arm, job.seed, progress));
    progress_.Add(StepsOf(job.arm) - std::min(StepsOf(job.arm), reported));
    progress_.Finished(job.arm, job.seed, result);
    return results_->Add(job.run, result);
  }

  const RunnerOptions& options_;
  const BenchData& data_;
  const std::vector<Arm>& arms_;
  ResultsFile* const results_;
  Progress progress_;
};

}  // namespace

std::vector<Arm> WithNeededArms(const std::vector<Arm>& selected, const std::vector<Arm>& all) {
  std::vector<Arm> result = selected;
  const auto chosen = [&](const Arm& arm) {
    return std::any_of(result.begin(), result.end(), [&](const Arm& other) {
      return other.method == arm.method && CodingName(other) == CodingName(arm) && SameSetting(other, arm);
    });
  };
  // Backwards: what gives rounds may itself need a sweep, which stands in front of it.
  for (auto arm = all.rbegin(); arm != all.rend(); ++arm) {
    if (chosen(*arm)) continue;
    const bool needed = std::any_of(result.begin(), result.end(), [&](const Arm& other) {
      return (NeedsMomentum(other) && IsSweepFor(*arm, other)) || IsRoundsFor(*arm, other);
    });
    if (needed) result.insert(result.begin(), *arm);
  }
  return result;
}

absl::StatusOr<std::vector<ArmResults>> RunArms(const RunnerOptions& options, const BenchData& data,
                                                const std::vector<Arm>& arms, ResultsFile* results) {
  return Runner(options, data, arms, results).Run();
}

}  // namespace autoloco::bench

#include "tests/bench/learning/outer_run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/parallel.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "server/core/combination.h"
#include "server/core/interval_policy.h"
#include "server/core/round_statistics.h"
#include "server/kernels/commit.h"
#include "tests/bench/learning/evaluation.h"
#include "tests/bench/learning/stacked_engine.h"

namespace autoloco::bench {
namespace {

constexpr int kZstdLevel = 1;
constexpr std::uint64_t kDropStream = 0x64726f70;
constexpr std::uint64_t kLateStream = 0x6c617465;
constexpr double kAbsentFrom = 0.3;
constexpr double kAbsentUntil = 0.6;
constexpr double kLateDiscount = 0.25;  // weight 1 / (1 + 0.25) one version later

// A delta on its way to a commit.
struct Delivery {
  std::uint32_t worker = 0;
  std::string payload;
  std::vector<float> residual;  // what stays with the worker if the delta is accepted; empty: nothing is carried
  server::WorkDone work;
  double loss_mean = 0;
  double loss_first = 0;
};

// What one worker does in one round.
struct Part {
  bool present = true;
  std::uint32_t steps = 0;  // the last of the interval
};

server::IntervalConfig MakeIntervalConfig(const BenchSettings& settings, const Arm& arm, std::uint64_t seed) {
  server::IntervalConfig config;
  config.policy = arm.policy;
  config.steps = arm.interval;
  config.steps_min = std::max<std::uint32_t>(1, arm.interval / 2);
  config.steps_max = arm.interval * 8;
  config.total_inner_steps = settings.steps;
  config.schedule = InnerSchedule(settings, arm);
  config.learning_rate_power = arm.learning_rate_power;
  config.agreement_power = arm.agreement_power;
  config.seed = seed;
  config.spike_guard = arm.policy != server::IntervalPolicy::kFixed && arm.policy != server::IntervalPolicy::kRandom &&
                       arm.policy != server::IntervalPolicy::kReplay;
  if (arm.policy == server::IntervalPolicy::kRandom) config.target_rounds = arm.rounds;
  if (arm.policy == server::IntervalPolicy::kReplay) {  // as equal as whole steps allow
    for (std::uint64_t i = 0; i < arm.rounds; ++i) {
      config.replay.push_back(
          static_cast<std::uint32_t>(settings.steps * (i + 1) / arm.rounds - settings.steps * i / arm.rounds));
    }
  }
  return config;
}

server::OuterSettings MakeOuterSettings(const BenchSettings& settings, const Arm& arm) {
  server::OuterSettings outer;
  outer.learning_rate = settings.outer_learning_rate;
  outer.momentum = {arm.momentum, true};
  outer.correction = arm.correction;
  outer.reference_learning_rate_sum = arm.interval * settings.learning_rate * arm.learning_rate_scale;
  outer.final_average = arm.final_average;
  return outer;
}

server::OuterCoefficients ToCoefficients(const server::OuterStep& step) {
  server::OuterCoefficients coefficients{step.learning_rate, step.momentum.mu, step.momentum.nesterov};
  const server::OuterFactors& factors = step.factors;
  if (!factors.plain) coefficients.corrected = server::CorrectedStep{factors.a, factors.c, factors.p, factors.g};
  return coefficients;
}

class OuterRun {
 public:
  OuterRun(const BenchSettings& settings, const BenchData& data, const Arm& arm, std::uint64_t seed,
           std::unique_ptr<StackedEngine> engine)
      : settings_(settings),
        data_(data),
        arm_(arm),
        seed_(seed),
        intervals_(MakeIntervalConfig(settings, arm, seed)),
        outer_(MakeOuterSettings(settings, arm)),
        engine_(std::move(engine)),
        jumps_(settings.warmup_steps),
        was_absent_(engine_->models(), false),
        params_(engine_->layout().value_count()),
        momentum_(params_.size(), 0),
        residuals_(KeepsResiduals(arm) ? engine_->models() : 0, std::vector<float>(params_.size(), 0)) {
    InitializeParameters(engine_->layout(), seed, kInitStd, params_);
    if (!IsLossless(arm.broadcast)) view_ = params_;
  }

  absl::StatusOr<RunResult> Run(const std::function<void(std::uint64_t)>& progress) {
    const TextConfig& text = data_.text->config();
    AUTOLOCO_RETURN_IF_ERROR(Pull());
    while (done_ < settings_.steps) {
      const server::IntervalDecision decision = server::DecideInterval(intervals_, state_, done_);
      const std::vector<Part> parts = Assign(decision.steps);
      AUTOLOCO_ASSIGN_OR_RETURN(std::vector<Delivery> deliveries, TrainInterval(decision.steps, parts));
      AUTOLOCO_RETURN_IF_ERROR(Commit(decision, Arriving(parts, &deliveries)));
      done_ += decision.steps;
      AUTOLOCO_RETURN_IF_ERROR(Pull());
      AUTOLOCO_ASSIGN_OR_RETURN(const double loss, MeanLoss(data_.round_windows, text.context, engine_.get()));
      jumps_.Add(done_, loss);
      result_.losses.push_back(static_cast<float>(loss));
      result_.intervals.push_back(decision.steps);
      progress(std::uint64_t{decision.steps} * engine_->models());
    }
    AUTOLOCO_RETURN_IF_ERROR(SetAll(params_));  // what is exported, not the view
    AUTOLOCO_ASSIGN_OR_RETURN(result_.loss, MeanLoss(data_.final_windows, text.context, engine_.get()));
    result_.rounds = result_.intervals.size();
    result_.worst_jump = jumps_.worst();
    result_.bytes_per_worker = bytes_ / engine_->models();
    return result_;
  }

 private:
  std::uint32_t workers() const { return engine_->models(); }

  static bool KeepsResiduals(const Arm& arm) { return !IsLossless(arm.codec) && arm.error_feedback; }

  // What every worker holds.
  const std::vector<float>& view() const { return view_.empty() ? params_ : view_; }

  absl::Status SetAll(const std::vector<float>& values) {
    for (std::uint32_t worker = 0; worker < workers(); ++worker) {
      AUTOLOCO_RETURN_IF_ERROR(engine_->SetParameters(worker, values));
    }
    return absl::OkStatus();
  }

  // All simulated workers take over the current version.
  absl::Status Pull() { return SetAll(view()); }

  bool Absent(std::uint32_t worker) const {
    const double progress = static_cast<double>(done_) / static_cast<double>(settings_.steps);
    return worker < arm_.failures.absent && progress >= kAbsentFrom && progress < kAbsentUntil;
  }

  std::vector<Part> Assign(std::uint32_t steps) {
    std::vector<Part> parts(workers());
    present_ = 0;
    for (std::uint32_t worker = 0; worker < workers(); ++worker) {
      const bool joins = was_absent_[worker] && !Absent(worker);
      parts[worker].present = !Absent(worker);
      parts[worker].steps = joins ? std::max<std::uint32_t>(1, steps / 2) : steps;
      if (joins) Join(worker);
      was_absent_[worker] = Absent(worker);
      if (parts[worker].present) ++present_;
    }
    return parts;
  }

  // Fresh AdamW state, no residual, and, where the others need none any more, a snapshot.
  void Join(std::uint32_t worker) {
    AUTOLOCO_CHECK(engine_->ResetOptimizer(worker).ok());
    if (!residuals_.empty()) residuals_[worker].assign(params_.size(), 0);
    if (!view_.empty()) bytes_ += static_cast<double>(EncodeVector(view_, Codec::kFp32, kZstdLevel).size());
  }

  // Trains all workers through the interval and encodes what they did; one entry a worker, absent ones' are empty.
  absl::StatusOr<std::vector<Delivery>> TrainInterval(std::uint32_t steps, const std::vector<Part>& parts) {
    const std::size_t batch = std::size_t{settings_.rows} * (data_.text->config().context + 1);
    std::vector<std::int32_t> tokens(batch * workers());
    std::vector<double> rates(workers());
    std::vector<Delivery> deliveries(workers());
    for (std::uint32_t step = 0; step < steps; ++step) {
      const double rate = LearningRateAt(intervals_.schedule, done_ + step);
      for (std::uint32_t worker = 0; worker < workers(); ++worker) {
        data_.text->ReadBatch(arm_.data, seed_, worker, done_ + step, std::span(tokens).subspan(worker * batch, batch));
        const Part& part = parts[worker];
        rates[worker] = part.present && step + part.steps >= steps ? rate : 0;
      }
      AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<ModelStep> taken, engine_->Step(tokens, rates));
      for (std::uint32_t worker = 0; worker < workers(); ++worker) {
        if (rates[worker] <= 0) continue;
        Delivery& delivery = deliveries[worker];
        const std::uint32_t own_step = step + parts[worker].steps - steps;
        const std::uint32_t first = std::max<std::uint32_t>(1, std::min<std::uint32_t>(16, parts[worker].steps / 4));
        delivery.work.tokens += std::uint64_t{settings_.rows} * data_.text->config().context;
        delivery.work.learning_rate_sum += rate;
        delivery.loss_mean += taken[worker].loss / parts[worker].steps;
        if (own_step < first) delivery.loss_first += taken[worker].loss / first;
      }
    }
    std::vector<float> delta(params_.size());
    for (std::uint32_t worker = 0; worker < workers(); ++worker) {
      if (!parts[worker].present) continue;
      AUTOLOCO_RETURN_IF_ERROR(engine_->GetParameters(worker, delta));
      for (std::size_t i = 0; i < delta.size(); ++i) delta[i] = view()[i] - delta[i];
      AUTOLOCO_RETURN_IF_ERROR(Encode(worker, delta, &deliveries[worker]));
      bytes_ += static_cast<double>(deliveries[worker].payload.size());
    }
    return deliveries;
  }

  absl::Status Encode(std::uint32_t worker, std::span<const float> delta, Delivery* delivery) {
    delivery->worker = worker;
    if (residuals_.empty()) {
      AUTOLOCO_ASSIGN_OR_RETURN(delivery->payload, EncodeVector(delta, UpCoding(), nullptr));
      return absl::OkStatus();
    }
    delivery->residual.resize(delta.size());
    BlockEncoder encoder(UpCoding());
    for (std::uint64_t block = 0, begin = 0; begin < delta.size(); ++block) {
      const std::uint64_t size = BlockSize(delta.size(), block);
      AUTOLOCO_RETURN_IF_ERROR(encoder
                                   .EncodeWithResidual(static_cast<std::uint32_t>(block), delta.subspan(begin, size),
                                                       std::span(residuals_[worker]).subspan(begin, size),
                                                       std::span(delivery->residual).subspan(begin, size),
                                                       &delivery->payload)
                                   .status());
      begin += size;
    }
    return absl::OkStatus();
  }

  Coding UpCoding() const { return {.codec = arm_.codec, .zstd_level = kZstdLevel}; }

  void Accept(Delivery* delivery) {
    if (!residuals_.empty()) residuals_[delivery->worker] = std::move(delivery->residual);
  }

  // What the server commits: who delivered in time, then what is left of the round before.
  std::vector<Delivery> Arriving(const std::vector<Part>& parts, std::vector<Delivery>* deliveries) {
    const std::uint64_t round = result_.intervals.size();
    const RandomStream drops(seed_, kDropStream);
    const Permutation order(workers(), Mix(seed_, kLateStream, round));
    std::vector<Delivery> arriving;
    std::vector<Delivery> late;
    std::vector<Delivery> dropped;
    for (std::uint32_t worker = 0; worker < workers(); ++worker) {
      if (!parts[worker].present) continue;
      Delivery& delivery = (*deliveries)[worker];
      if (drops.Uniform(round * workers() + worker) < arm_.failures.dropped) {
        dropped.push_back(std::move(delivery));
      } else if (order.At(worker) < arm_.failures.late) {
        delivery.work.staleness = 1;
        late.push_back(std::move(delivery));
      } else {
        arriving.push_back(std::move(delivery));
      }
    }
    if (arriving.empty()) arriving = std::move(dropped);  // a round in which nobody delivers is run again
    AUTOLOCO_CHECK(!arriving.empty());
    for (Delivery& delivery : arriving) Accept(&delivery);
    if (arm_.failures.late_applied) {
      for (Delivery& delivery : late) Accept(&delivery);
      std::move(late_.begin(), late_.end(), std::back_inserter(arriving));
      late_ = std::move(late);
    }
    return arriving;
  }

  absl::Status Commit(const server::IntervalDecision& decision, const std::vector<Delivery>& arriving) {
    std::vector<server::WorkDone> work;
    for (const Delivery& delivery : arriving) work.push_back(delivery.work);
    const server::Combination combined =
        server::CombineWork(work, {arm_.failures.late_applied ? 1U : 0U, kLateDiscount});
    const bool last = done_ + decision.steps == settings_.steps;
    const server::OuterStep step =
        server::MakeOuterStep(outer_, {combined.learning_rate_sum, decision.momentum_scale, last});
    std::vector<server::Contribution> contributions;
    for (std::size_t i = 0; i < arriving.size(); ++i) {
      if (combined.parts[i].left_out != server::LeftOut::kNo) continue;
      contributions.push_back(
          {std::as_bytes(std::span<const char>(arriving[i].payload)), arm_.codec, combined.parts[i].weight});
    }
    const server::CommitInputs inputs{contributions, ToCoefficients(step),
                                      Coding{.codec = arm_.broadcast, .zstd_level = kZstdLevel}};
    AUTOLOCO_ASSIGN_OR_RETURN(const server::CommitResult result,
                              server::Commit(inputs, {params_, momentum_, view_}, &pool_));
    if (!result.statistics.finite) return absl::OutOfRangeError("the outer step gave values that are not finite");
    bytes_ += static_cast<double>(present_ * result.coding.bytes);
    if (!view_.empty() && !arm_.error_feedback) params_ = view_;
    Observe(decision, arriving, combined, step, result.statistics);
    return absl::OkStatus();
  }

  // The round's record, as the server makes it, for the next decision.
  void Observe(const server::IntervalDecision& decision, const std::vector<Delivery>& arriving,
               const server::Combination& combined, const server::OuterStep& step,
               const server::OuterStepStatistics& statistics) {
    server::RoundRecord record;
    record.round = result_.intervals.size();
    record.first_inner_step = done_;
    record.inner_steps = decision.steps;
    record.interval = decision.interval;
    record.reason = decision.reason;
    record.learning_rate = decision.learning_rate;
    record.momentum_scale = decision.momentum_scale;
    record.learning_rate_sum = combined.learning_rate_sum;
    record.ratio = step.ratio;
    record.contributors = combined.contributors;
    record.mean_delta_norm = std::sqrt(statistics.mean_delta_squared_norm);
    record.parameter_norm = std::sqrt(statistics.params_squared_norm);
    std::vector<server::DeltaScalars> scalars;
    double loss_mean = 0;
    double loss_first = 0;
    for (std::size_t i = 0; i < arriving.size(); ++i) {
      const server::Combination::Part& part = combined.parts[i];
      if (part.left_out != server::LeftOut::kNo) continue;
      scalars.push_back({part.share, part.weight, statistics.delta_squared_norms[scalars.size()]});
      loss_mean += part.share * arriving[i].loss_mean;
      loss_first += part.share * arriving[i].loss_first;
    }
    if (std::isfinite(loss_mean)) record.loss_mean = loss_mean;
    if (std::isfinite(loss_first)) record.loss_first = loss_first;
    record.statistics = server::ComputeRoundStatistics(
        {scalars, statistics.mean_delta_squared_norm, record.parameter_norm, static_cast<double>(decision.steps)});
    server::ObserveRound(intervals_, record, &state_);
  }

  const BenchSettings& settings_;
  const BenchData& data_;
  const Arm& arm_;
  const std::uint64_t seed_;
  const server::IntervalConfig intervals_;
  const server::OuterSettings outer_;
  const std::unique_ptr<StackedEngine> engine_;
  WorkPool pool_{1};
  JumpMeter jumps_;
  server::IntervalState state_;
  std::uint64_t done_ = 0;  // inner steps
  std::vector<bool> was_absent_;
  std::uint32_t present_ = 0;   // workers in this round
  std::vector<Delivery> late_;  // of the round before
  std::vector<float> params_;
  std::vector<float> momentum_;
  std::vector<float> view_;                    // empty: the parameters are the view
  std::vector<std::vector<float>> residuals_;  // by worker; empty: none is kept
  double bytes_ = 0;                           // of all workers, both directions
  RunResult result_;
};

}  // namespace

ScheduleConfig InnerSchedule(const BenchSettings& settings, const Arm& arm) {
  ScheduleConfig schedule;
  schedule.schedule = arm.schedule;
  schedule.learning_rate = settings.learning_rate * arm.learning_rate_scale;
  schedule.warmup_steps = settings.warmup_steps;
  schedule.total_steps = settings.steps;
  return schedule;
}

void JumpMeter::Add(std::uint64_t steps_done, double loss) {
  const bool counts = has_last_ && steps_done > warmup_steps_;
  if (counts && (!has_worst_ || loss - last_ > worst_)) {
    worst_ = loss - last_;
    has_worst_ = true;
  }
  last_ = loss;
  has_last_ = true;
}

absl::StatusOr<RunResult> SimulateOuter(const BenchSettings& settings, const BenchData& data, const Arm& arm,
                                        std::uint64_t seed, const std::function<void(std::uint64_t)>& progress) {
  AUTOLOCO_CHECK(arm.momentum != kTuned);
  const TextConfig& text = data.text->config();
  AUTOLOCO_ASSIGN_OR_RETURN(std::unique_ptr<StackedEngine> engine,
                            StackedEngine::Make(BenchShape(text.context), {}, text.workers));
  return OuterRun(settings, data, arm, seed, std::move(engine)).Run(progress);
}

}  // namespace autoloco::bench

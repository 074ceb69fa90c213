#include "server/core/round_control.h"

#include <cmath>
#include <optional>
#include <utility>

namespace autoloco::server {
namespace {

const char* WhyLeftOut(LeftOut left_out) {
  switch (left_out) {
    case LeftOut::kNo: return "";
    case LeftOut::kNoTokens: return "it was trained on no tokens";
    case LeftOut::kTooLittle: return "it did less than a twentieth of the longest interval's work";
    case LeftOut::kTooLate: return "it is late";
  }
  return "";
}

// Mean of one number of the reports, by share; undefined where it is not finite.
std::optional<double> MeanOf(const OpenRound& round, double IntervalReport::*number) {
  double mean = 0;
  for (const auto& [name, entry] : round.entries) {
    if (entry.share > 0) mean += entry.share * (entry.report.*number);
  }
  if (!std::isfinite(mean)) return std::nullopt;
  return mean;
}

}  // namespace

RoundRecord OpenRecord(Round round, std::uint64_t first_inner_step, const IntervalDecision& decision) {
  RoundRecord record;
  record.round = round;
  record.first_inner_step = first_inner_step;
  record.inner_steps = decision.steps;
  record.interval = decision.interval;
  record.reason = decision.reason;
  record.learning_rate = decision.learning_rate;
  record.momentum_scale = decision.momentum_scale;
  return record;
}

CommitPlan PlanCommit(const OuterSettings& settings, const CommitOptions& options, OpenRound* round) {
  std::vector<WorkDone> work;
  std::vector<std::pair<const std::string, RoundEntry>*> delivered;
  for (auto& named : round->entries) {
    if (!named.second.delivered) continue;
    work.push_back({named.second.report.tokens, named.second.report.learning_rate_sum,
                    static_cast<std::uint32_t>(round->number - named.second.assignment.round)});
    delivered.push_back(&named);
  }
  const Combination combination =
      CombineWork(work, {options.staleness_max, options.staleness_discount, settings.equal_votes});

  CommitPlan plan;
  plan.commit.round = round->number;
  RoundRecord& record = round->record;
  for (std::size_t i = 0; i < delivered.size(); ++i) {
    const std::string& name = delivered[i]->first;
    RoundEntry& entry = delivered[i]->second;
    const Combination::Part& part = combination.parts[i];
    entry.share = part.share;
    entry.weight = part.weight;
    if (part.left_out != LeftOut::kNo) {
      plan.left_out.push_back({name, round->KeyOf(name, entry), WhyLeftOut(part.left_out)});
      continue;
    }
    plan.commit.contributions.push_back({round->KeyOf(name, entry), part.weight * entry.clip});
    record.worker_steps += entry.report.inner_steps;
    record.tokens += entry.report.tokens;
  }
  plan.commit.step =
      MakeOuterStep(settings, {combination.learning_rate_sum, record.momentum_scale, options.last});
  record.learning_rate_sum = combination.learning_rate_sum;
  record.ratio = plan.commit.step.ratio;
  record.factors = plan.commit.step.factors;
  record.final_average = plan.commit.step.final_average;
  record.assigned = static_cast<std::uint32_t>(round->entries.size());
  record.contributors = combination.contributors;
  record.loss_mean = MeanOf(*round, &IntervalReport::loss_mean);
  record.loss_first = MeanOf(*round, &IntervalReport::loss_first);
  record.loss_last = MeanOf(*round, &IntervalReport::loss_last);
  record.gradient_norm = MeanOf(*round, &IntervalReport::gradient_norm_mean);
  record.step_seconds = MeanOf(*round, &IntervalReport::step_seconds_mean);
  return plan;
}

void FinishRecord(const CommitStats& stats, absl::Duration duration, OpenRound* round) {
  std::vector<DeltaScalars> deltas;
  for (const auto& [name, entry] : round->entries) {
    const auto norm = stats.delta_norm_by_worker.find(name);
    if (entry.share > 0 && norm != stats.delta_norm_by_worker.end()) {
      const double counted = norm->second * entry.clip;
      deltas.push_back({entry.share, entry.weight, counted * counted});
    }
  }
  RoundRecord& record = round->record;
  record.mean_delta_norm = stats.mean_delta_norm;
  record.momentum_norm = stats.momentum_norm;
  record.parameter_norm = stats.parameter_norm;
  record.statistics = ComputeRoundStatistics({deltas, stats.mean_delta_norm * stats.mean_delta_norm,
                                              stats.parameter_norm, static_cast<double>(record.inner_steps)});
  record.seconds = absl::ToDoubleSeconds(duration);
}

}  // namespace autoloco::server

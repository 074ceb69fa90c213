#include "server/core/interval_budget.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "server/core/interval_rules.h"

namespace autoloco::server {
namespace {

constexpr double kBudgetGain = 2;
constexpr double kBudgetSumGain = 0.2;
constexpr double kBudgetLeadMax = 0.5;
constexpr double kBudgetSumMax = 4;
constexpr int kBudgetCells = 1024;

constexpr int kBudgetBisections = 50;

// The target as a plan: the schedule's part of the rule, scaled so that within the limits it takes target_rounds.
struct BudgetPlan {
  double scale = 1;
  double rounds = 0;  // planned for the steps done
};

BudgetPlan PlanBudget(const IntervalConfig& config, std::uint64_t steps_done) {
  const double cell = static_cast<double>(config.total_inner_steps) / kBudgetCells;
  std::vector<double> intervals(kBudgetCells);
  for (int i = 0; i < kBudgetCells; ++i) {
    intervals[i] = config.steps * ScheduleFactor(config, static_cast<std::uint64_t>((i + 0.5) * cell));
  }
  const auto rounds_until = [&](double scale, double steps) {
    double rounds = 0;
    for (int i = 0; i < kBudgetCells; ++i) {
      const double interval = std::clamp<double>(scale * intervals[i], config.steps_min, config.steps_max);
      rounds += std::clamp(steps - i * cell, 0.0, cell) / interval;
    }
    return rounds;
  };
  const double total = static_cast<double>(config.total_inner_steps);
  double low = std::log(static_cast<double>(config.steps_min) / config.steps) - 2 * kBudgetSumMax;
  double high = std::log(static_cast<double>(config.steps_max) / config.steps);
  for (int i = 0; i < kBudgetBisections; ++i) {
    const double middle = (low + high) / 2;
    (rounds_until(std::exp(middle), total) > static_cast<double>(config.target_rounds) ? low : high) = middle;
  }
  return {std::exp(high), rounds_until(std::exp(high), static_cast<double>(steps_done))};
}

// How far the committed rounds are ahead of the plan.
double BudgetLead(const BudgetPlan& plan, double rounds) {
  return std::clamp((rounds - plan.rounds) / std::max(1.0, plan.rounds), -kBudgetLeadMax, kBudgetLeadMax);
}

}  // namespace

bool HasBudget(const IntervalConfig& config) {
  return config.target_rounds != 0 && config.policy != IntervalPolicy::kRandom &&
         config.policy != IntervalPolicy::kReplay;
}

double BudgetFactor(const IntervalConfig& config, const IntervalState& state, std::uint64_t first_inner_step) {
  const BudgetPlan plan = PlanBudget(config, first_inner_step);
  return plan.scale * std::exp(kBudgetGain * BudgetLead(plan, state.rounds) + state.budget);
}

void ObserveBudget(const IntervalConfig& config, const RoundRecord& record, IntervalState* state) {
  const double lead = BudgetLead(PlanBudget(config, record.first_inner_step + record.inner_steps), state->rounds);
  // Beyond a limit the sum would only grow.
  if (record.reason == Reason::kMinimum && lead < 0) return;
  if (record.reason == Reason::kMaximum && lead > 0) return;
  state->budget = std::clamp(state->budget + kBudgetSumGain * lead, -kBudgetSumMax, kBudgetSumMax);
}

}  // namespace autoloco::server

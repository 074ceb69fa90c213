#include "server/core/round_deadline.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/core/median.h"

namespace autoloco::server {
namespace {

// A standard deviation over the median absolute deviation, of normal values.
constexpr double kDeviationOverMad = 1.4826;
// ceil(0.6 x 5) is 3, though 0.6 x 5 may come out a little above.
constexpr double kQuorumRounding = 1e-9;

// What the assigned workers are doing, added up.
struct Tally {
  std::vector<double> arrivals;   // seconds from the opening
  std::vector<double> durations;  // seconds from the own assignment
  absl::Time last_delivery = absl::InfinitePast();
  absl::Time last_break = absl::InfinitePast();
  std::size_t ended_early = 0;
  std::size_t connected = 0;
  std::size_t disconnected = 0;
};

Tally Count(absl::Time opened_at, std::span<const AwaitedWork> work) {
  Tally tally;
  for (const AwaitedWork& one : work) {
    switch (one.state) {
      case AwaitedWork::State::kDelivered:
        tally.arrivals.push_back(absl::ToDoubleSeconds(one.delivered_at - opened_at));
        tally.durations.push_back(absl::ToDoubleSeconds(one.delivered_at - one.assigned_at));
        tally.last_delivery = std::max(tally.last_delivery, one.delivered_at);
        break;
      case AwaitedWork::State::kEndedEarly:
        ++tally.ended_early;
        tally.last_delivery = std::max(tally.last_delivery, one.delivered_at);
        break;
      case AwaitedWork::State::kConnected: ++tally.connected; break;
      case AwaitedWork::State::kDisconnected:
        ++tally.disconnected;
        tally.last_break = std::max(tally.last_break, one.disconnected_at);
        break;
      case AwaitedWork::State::kMissing: break;
    }
  }
  return tally;
}

void SetFixed(const DeadlineSettings& settings, absl::Time opened_at, RoundDeadline* deadline) {
  deadline->at = opened_at + settings.fixed;
  deadline->reason = Reason::kDeadlineFixed;
  deadline->text = absl::StrCat(absl::FormatDuration(settings.fixed), " after the opening, as configured");
}

void SetLearned(const DeadlineSettings& settings, absl::Time opened_at, const Tally& tally, RoundDeadline* deadline) {
  const double arrival = Median(tally.arrivals);
  const double spread = kDeviationOverMad * MedianDeviation(tally.arrivals, arrival);
  const double most = settings.slack_share_max * Median(tally.durations);
  const double slack =
      std::max(absl::ToDoubleSeconds(settings.slack_min), std::min(settings.spread_factor * spread, most));
  deadline->at = opened_at + absl::Seconds(arrival + slack);
  deadline->reason = Reason::kDeadline;
  deadline->text =
      absl::StrFormat("%.3f s after the opening: median arrival %.3f s of %d deltas, spread %.3f s, slack %.3f s",
                      arrival + slack, arrival, tally.arrivals.size(), spread, slack);
}

}  // namespace

std::uint32_t QuorumOf(double share, std::size_t assigned) {
  const double wanted = std::ceil(share * static_cast<double>(assigned) - kQuorumRounding);
  return static_cast<std::uint32_t>(std::clamp(wanted, 1.0, std::max(1.0, static_cast<double>(assigned))));
}

RoundDeadline ComputeDeadline(const DeadlineSettings& settings, absl::Time opened_at,
                              std::span<const AwaitedWork> work) {
  RoundDeadline deadline;
  const Tally tally = Count(opened_at, work);
  deadline.quorum = QuorumOf(settings.quorum_share, work.size() - tally.ended_early);
  if (tally.arrivals.size() + tally.ended_early == 0 || tally.connected + tally.disconnected == 0) return deadline;
  if (tally.arrivals.size() >= deadline.quorum && settings.quorum_share < 1) {
    if (settings.fixed > absl::ZeroDuration()) {
      SetFixed(settings, opened_at, &deadline);
    } else {
      SetLearned(settings, opened_at, tally, &deadline);
    }
  }
  if (tally.connected > 0) return deadline;
  const absl::Time grace = std::max(tally.last_delivery, tally.last_break) + settings.disconnect_grace;
  if (deadline.at.has_value() && *deadline.at <= grace) return deadline;
  deadline.at = grace;
  deadline.reason = Reason::kDisconnectGrace;
  deadline.text = absl::StrCat(absl::FormatDuration(settings.disconnect_grace),
                               " after the last delta, since the sessions of all that are missing are broken");
  return deadline;
}

}  // namespace autoloco::server

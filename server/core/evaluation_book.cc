#include "server/core/evaluation_book.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace autoloco::server {

absl::Status CheckPart(const EvaluationPart& part, std::uint64_t tokens_most) {
  if (part.tokens > tokens_most) {
    return absl::InvalidArgumentError(absl::StrCat("tokens: at most ", tokens_most, ", got ", part.tokens));
  }
  const double loss_most = kSaneLoss * static_cast<double>(part.tokens);
  if (std::isfinite(part.loss_sum) && part.loss_sum >= 0 && part.loss_sum <= loss_most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("loss sum over ", part.tokens, " tokens: want 0 to ", loss_most, " nats, got ", part.loss_sum));
}

void AddEvaluation(const EvaluationPoint& point, std::vector<EvaluationPoint>* points) {
  if (!points->empty() && points->back().version == point.version) points->pop_back();
  points->push_back(point);
  if (points->size() > kEvaluationsKept + 1) points->erase(points->begin() + 1);
}

void EvaluationBook::Begin(Version version, std::uint64_t inner_step, std::uint32_t parts) {
  version_ = version;
  inner_step_ = inner_step;
  wanted_ = parts;
  parts_.clear();
}

void EvaluationBook::Add(const std::string& worker, const EvaluationPart& part) {
  if (Awaits(worker, part.version)) parts_.emplace(worker, part);
}

std::optional<EvaluationPoint> EvaluationBook::Finish() {
  if (wanted_ == 0) return std::nullopt;
  wanted_ = 0;
  EvaluationPoint point{.version = version_, .inner_step = inner_step_, .loss = 0, .tokens = 0};
  double sum = 0;
  for (const auto& [worker, part] : parts_) {
    sum += part.loss_sum;
    point.tokens += part.tokens;
  }
  parts_.clear();
  if (point.tokens == 0) return std::nullopt;
  point.loss = sum / static_cast<double>(point.tokens);
  AddEvaluation(point, &history_);
  return point;
}

}  // namespace autoloco::server

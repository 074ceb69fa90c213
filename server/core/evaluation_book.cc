#include "server/core/evaluation_book.h"

#include <cmath>

namespace autoloco::server {

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

bool EvaluationBook::Add(const std::string& worker, const EvaluationPart& part) {
  if (wanted_ == 0 || part.version != version_) return false;
  return parts_.emplace(worker, part).second;
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
  if (!std::isfinite(point.loss)) return point;
  AddEvaluation(point, &history_);
  return point;
}

}  // namespace autoloco::server

// The held-out loss of a version, put together from the parts that its workers evaluated.
#ifndef AUTOLOCO_SERVER_CORE_EVALUATION_BOOK_H_
#define AUTOLOCO_SERVER_CORE_EVALUATION_BOOK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "server/core/types.h"

namespace autoloco::server {

// The first point and the last ones are kept.
inline constexpr std::size_t kEvaluationsKept = 20;

// Nats a token; a model that knows nothing loses the logarithm of its vocabulary, about 12.
inline constexpr double kSaneLoss = 50;

// OK when a worker can have evaluated this: at most `tokens_most` tokens, at 0 to kSaneLoss nats each.
absl::Status CheckPart(const EvaluationPart& part, std::uint64_t tokens_most);

// Appends to the points of a run, oldest first; a point of the same version, whose round was aborted, gives way.
void AddEvaluation(const EvaluationPoint& point, std::vector<EvaluationPoint>* points);

// Not thread-safe; the core's own. One version at a time.
class EvaluationBook {
 public:
  explicit EvaluationBook(std::vector<EvaluationPoint> history) : history_(std::move(history)) {}

  // From now on parts of `version` are taken, one a worker, `parts` in all.
  void Begin(Version version, std::uint64_t inner_step, std::uint32_t parts);
  // True while this version is under way and no part of the worker has come.
  bool Awaits(const std::string& worker, Version version) const {
    return wanted_ > 0 && version == version_ && !Has(worker);
  }
  // Does nothing where the part is not awaited. One without tokens (fewer windows than workers) counts as arrived.
  // REQUIRES: CheckPart.
  void Add(const std::string& worker, const EvaluationPart& part);
  bool Has(const std::string& worker) const { return parts_.count(worker) != 0; }
  bool UnderWay() const { return wanted_ > 0; }
  Version version() const { return version_; }  // under way, or the last one
  bool Complete() const { return wanted_ > 0 && parts_.size() == wanted_; }
  // Ends the version under way: the loss over the parts that came, summed in name order; none if none came.
  std::optional<EvaluationPoint> Finish();

  // The first point and the last kEvaluationsKept ones, oldest first.
  const std::vector<EvaluationPoint>& history() const { return history_; }

 private:
  Version version_ = 0;
  std::uint64_t inner_step_ = 0;
  std::uint32_t wanted_ = 0;  // 0: nothing under way
  std::map<std::string, EvaluationPart> parts_;
  std::vector<EvaluationPoint> history_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_EVALUATION_BOOK_H_

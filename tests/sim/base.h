// What a worker holds of the parameters: values, and the version of each block of them. The base buffer of the product
// (worker/runtime/base_buffer.h, worker/client/pull.h) over the few values of the simulation.
#ifndef AUTOLOCO_TESTS_SIM_BASE_H_
#define AUTOLOCO_TESTS_SIM_BASE_H_

#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "server/core/events.h"
#include "tests/sim/messages.h"
#include "tests/sim/model.h"
#include "worker/core/events.h"

namespace autoloco::sim {

class Base {
 public:
  // Holds nothing. `broadcast`: how broadcasts are coded. `careless`, a bug to plant: they are added to blocks that
  // have them already, and no digest is looked at.
  explicit Base(const Coding& broadcast = {}, bool careless = false)
      : broadcast_(broadcast), careless_(careless), values_(kValues, 0.0F), versions_(kBlocks, std::nullopt) {}

  const Values& values() const { return values_; }
  bool mixed() const { return mixed_; }

  // What is held, into a request.
  void Describe(server::PullOpened* pull) const;
  // What a probe found.
  worker::PullEnded Compare(const PullReply& reply) const;
  // Takes what came, which may be the first blocks of it alone; says what is held then. REQUIRES: the reply is OK or
  // has blocks.
  worker::PullEnded Take(const PullReply& reply);
  // The rest of what was cut is gone.
  void Abandon();
  // For a planted bug.
  void SetValues(const Values& values) { values_ = values; }

 private:
  struct Transfer {
    server::PullForm form = server::PullForm::kNothing;
    Version version = 0;
  };
  bool IsMissing(std::size_t block) const;
  std::optional<std::size_t> FirstMissing() const;
  void Begin(server::PullForm form, Version version);
  absl::Status TakeBlock(std::size_t block, const PulledBlock& pulled);
  // Sets version, mixed_ and digest_ from the blocks.
  void Conclude();

  Coding broadcast_;
  bool careless_;
  Values values_;
  std::vector<std::optional<Version>> versions_;  // by block
  std::optional<Transfer> unfinished_;
  std::optional<Version> oldest_;  // none: nothing whole
  bool mixed_ = false;
  std::string digest_;  // of all values of one version
};

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_BASE_H_

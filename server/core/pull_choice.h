// What a pull is answered with: a pure function of what the worker holds and of what the server has.
//
// A worker follows the view by broadcasts, one version after the other. Where that cannot be, it gets the whole view
// out of the live buffer, whose blocks are of one version or, while a commit is under way, of two; it then asks again,
// as one that holds blocks of several versions, the oldest of which it names.
#ifndef AUTOLOCO_SERVER_CORE_PULL_CHOICE_H_
#define AUTOLOCO_SERVER_CORE_PULL_CHOICE_H_

#include <span>
#include <string>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "server/core/events.h"
#include "server/core/pull.h"
#include "server/core/round_record.h"

namespace autoloco::server {

// What the server has.
struct PullSituation {
  Version current = 0;
  std::string current_digest;            // of its view
  std::string initial_digest;            // of that of version 0, which no round made; empty: not known
  std::span<const RoundRecord> history;  // of the committed rounds, oldest first, up to the one that made `current`
  bool lossless = true;                  // versions are sent whole
  bool committing = false;               // version current + 1 is being made: the live view may be of both
  Version oldest_broadcast = 1;          // those from here to `current` can be sent
};

struct PullChoice {
  enum class Kind {
    kServe,
    kPark,    // ask again when the commit under way is done
    kRefuse,  // with `status`
  };
  Kind kind = Kind::kServe;
  // kServe.
  PullForm form = PullForm::kNothing;
  Version version = 0;      // that the worker holds afterwards; live: the current one
  std::string view_digest;  // of that version; live: empty
  absl::Status status;
  bool mismatch = false;  // what it holds is not what the server had as that version
};

PullChoice ChoosePull(const PullOpened& pull, const PullSituation& situation);

// Of the view of `version`; empty: not known.
std::string ViewDigestOf(Version version, const PullSituation& situation);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_PULL_CHOICE_H_

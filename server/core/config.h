// The settings that the server core acts on, as plain numbers; run_config.proto says what each one means.
#ifndef AUTOLOCO_SERVER_CORE_CONFIG_H_
#define AUTOLOCO_SERVER_CORE_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/tensor/layout.h"
#include "server/core/commit_method.h"
#include "server/core/interval_config.h"
#include "server/core/norm_admission.h"
#include "server/core/outer_schedule.h"
#include "server/core/round_deadline.h"
#include "server/core/worker_speed.h"

namespace autoloco::server {

// What becomes of a delta whose round has closed.
struct LateSettings {
  bool apply = false;              // it counts in a later round; false: it is dropped
  std::uint32_t versions_max = 2;  // at most this old
  double discount = 1;             // combination.h: lambda
};

struct CoreConfig {
  std::string run_id;
  std::uint32_t protocol_version = 0;
  Incarnation first_incarnation = 1;  // beyond all that earlier starts of the run's server may have given out
  bool began_anew = false;            // this start found nothing to go on from
  Layout layout;

  IntervalConfig interval;  // the length of the run stands here too
  OuterSettings outer;
  std::uint32_t batch_size = 0;         // samples of one inner step
  std::uint32_t tokens_per_sample = 1;  // that are trained on
  bool shared_data = true;
  std::uint32_t evaluation_windows = 512;  // held-out ones, of tokens_per_sample each; 0: no evaluation

  bool strict = false;
  std::uint32_t min_workers = 1;
  std::uint32_t start_workers = 0;  // 0: min_workers
  std::uint32_t max_workers = 256;
  absl::Duration lease;
  absl::Duration disconnect_grace;
  DeadlineSettings deadline;  // its grace is disconnect_grace
  SpeedSettings speed;
  NormSettings norm;
  LateSettings late;
  absl::Duration join_timeout;
  absl::Duration finish_timeout;

  CommitMethod method;                 // of the rounds that are decided from now on
  std::uint32_t broadcasts_kept = 16;  // versions whose broadcasts the shell keeps
  Version first_broadcast = 1;         // oldest version whose broadcast it has at the start, or the next one

  std::uint32_t checkpoint_every_rounds = 0;  // 0: only at the end
  std::uint64_t max_payload_bytes = 0;        // of one push, from layout and codec
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_CONFIG_H_

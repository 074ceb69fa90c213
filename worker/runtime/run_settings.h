// What a worker needs to know of the run, as plain values; run_config.proto says what each one means. The server is the
// only authority: these come in Welcome.
#ifndef AUTOLOCO_WORKER_RUNTIME_RUN_SETTINGS_H_
#define AUTOLOCO_WORKER_RUNTIME_RUN_SETTINGS_H_

#include <cstdint>

#include "common/base/schedule.h"
#include "common/codec/codec.h"
#include "common/tensor/decoder.h"
#include "worker/train/inner_config.h"

namespace autoloco::worker {

struct RunSettings {
  DecoderShape shape;
  std::uint64_t seed = 1;
  std::uint64_t total_inner_steps = 0;
  AdamWConfig adamw;
  ScheduleConfig schedule;
  std::uint32_t batch_size = 1;
  double held_out_fraction = 0;
  std::uint32_t evaluation_windows = 0;
  Coding coding;     // of deltas
  Coding broadcast;  // of what the server sends of a new version; lossless: whole parameters
  bool strict = false;

  bool operator==(const RunSettings&) const = default;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_RUNTIME_RUN_SETTINGS_H_

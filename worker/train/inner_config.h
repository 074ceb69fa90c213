// The inner optimizer's settings as plain numbers (InnerConfig of run_config.proto says what each one means); its
// learning rate is common/base/schedule.h.
#ifndef AUTOLOCO_WORKER_TRAIN_INNER_CONFIG_H_
#define AUTOLOCO_WORKER_TRAIN_INNER_CONFIG_H_

namespace autoloco::worker {

struct AdamWConfig {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // not on one-dimensional tensors
  double clip_norm = 1;       // 0: never

  bool operator==(const AdamWConfig&) const = default;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_TRAIN_INNER_CONFIG_H_

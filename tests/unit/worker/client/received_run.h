// A RunConfig as a server sends it: every setting set.
#ifndef AUTOLOCO_TESTS_UNIT_WORKER_CLIENT_RECEIVED_RUN_H_
#define AUTOLOCO_TESTS_UNIT_WORKER_CLIENT_RECEIVED_RUN_H_

#include "autoloco/v1/run_config.pb.h"
#include "common/base/check.h"
#include "common/config/load.h"

namespace autoloco::worker {

inline v1::RunConfig ReceivedRun() {
  v1::ServerConfig config;
  const Outcome outcome =
      LoadServerConfig({"--state-dir=/tmp/x", "--run.model.preset=nano", "--run.total-inner-steps=60",
                        "--run.inner.warmup-steps=7", "--run.inner.learning-rate=0.004", "--run.inner.batch-size=8",
                        "--run.codec.delta=bf16", "--run.codec.broadcast=quantized", "--run.codec.broadcast-step=3",
                        "--run.evaluation.windows=99", "--run.rounds.heartbeat-seconds=1.5", "--run.seed=5"},
                       {}, &config);
  AUTOLOCO_CHECK(!outcome.exits);
  return config.run();
}

}  // namespace autoloco::worker

#endif  // AUTOLOCO_TESTS_UNIT_WORKER_CLIENT_RECEIVED_RUN_H_

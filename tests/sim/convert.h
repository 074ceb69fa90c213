// Between the nouns of the two cores, as the protocol's messages carry them.
#ifndef AUTOLOCO_TESTS_SIM_CONVERT_H_
#define AUTOLOCO_TESTS_SIM_CONVERT_H_

#include "server/core/types.h"
#include "tests/sim/messages.h"
#include "worker/core/types.h"

namespace autoloco::sim {

worker::Assignment ToWorkerAssignment(const server::Assignment& assignment);
server::IntervalReport ToServerReport(const worker::IntervalReport& report);
server::WorkerPhase ToServerPhase(worker::WorkerPhase phase);
worker::PullForm ToWorkerForm(server::PullForm form);
worker::PushOutcome ToWorkerOutcome(server::PushOutcome outcome);

// For the trace, e.g. "hello".
const char* MessageName(const ToServer& message);
const char* MessageName(const ToWorker& message);

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_CONVERT_H_

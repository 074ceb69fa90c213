// Everything that the worker's programs share: from the command line to the exit code. They differ in the trainer only.
#ifndef AUTOLOCO_WORKER_WORKER_APP_H_
#define AUTOLOCO_WORKER_WORKER_APP_H_

#include "worker/runtime/trainer_factory.h"

namespace autoloco::worker {

// `autoloco-worker [flags]`: loads the configuration, trains until the run is over, and returns the exit code: 0 done
// or told to stop, 1 this worker failed, 2 configuration or refused by the server, 75 server not reached in time.
// `factory` is borrowed for the call.
int RunWorkerApp(int argc, char** argv, TrainerFactory* factory);

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_WORKER_APP_H_

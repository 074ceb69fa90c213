// `autoloco-worker generate`: text from a trained model.
#ifndef AUTOLOCO_WORKER_GENERATE_COMMAND_H_
#define AUTOLOCO_WORKER_GENERATE_COMMAND_H_

#include <string>
#include <vector>

namespace autoloco::worker {

// `arguments`: those after "generate". Writes prompt and continuation to standard output; returns the exit code: 0, 1
// when the model fails, 2 for a wrong argument or a folder that holds no model.
int RunGenerateCommand(const std::vector<std::string>& arguments);

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_GENERATE_COMMAND_H_

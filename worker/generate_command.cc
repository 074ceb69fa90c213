#include "worker/generate_command.h"

#include <cstdio>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/tensor/model_folder.h"
#include "worker/train/torch_generate.h"

namespace autoloco::worker {
namespace {

constexpr char kUsage[] =
    "Usage: autoloco-worker generate --model FOLDER [options]\n"
    "Continues a prompt with a trained model (a checkpoint's folder, or any Llama-shaped one with byte tokens).\n"
    "\n"
    "  --model FOLDER     config.json beside params.safetensors or model.safetensors\n"
    "  --prompt TEXT      what to continue; default: a line break\n"
    "  --tokens N         bytes to draw; default 200\n"
    "  --temperature T    0: always the likeliest byte; default 0.8\n"
    "  --top-k K          draw from the K likeliest bytes only; 0: from all; default 0\n"
    "  --seed S           equal seeds, equal text; default 1\n"
    "  --threads N        CPU threads; 0: as LibTorch chooses\n";

struct Command {
  std::string model;
  GenerateOptions options;
};

template <typename Number>
absl::Status ParseNumber(absl::string_view flag, absl::string_view text, Number* number) {
  bool parsed = false;
  if constexpr (std::is_floating_point_v<Number>) {
    parsed = absl::SimpleAtod(text, number);
  } else {
    parsed = absl::SimpleAtoi(text, number);
  }
  if (parsed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, ": expected a number, found '", text, "'"));
}

absl::Status SetFlag(absl::string_view flag, const std::string& value, Command* command) {
  GenerateOptions& options = command->options;
  if (flag == "--model") {
    command->model = value;
  } else if (flag == "--prompt") {
    options.prompt = value;
  } else if (flag == "--tokens") {
    return ParseNumber(flag, value, &options.tokens);
  } else if (flag == "--temperature") {
    return ParseNumber(flag, value, &options.sampler.temperature);
  } else if (flag == "--top-k") {
    return ParseNumber(flag, value, &options.sampler.top_k);
  } else if (flag == "--seed") {
    return ParseNumber(flag, value, &options.seed);
  } else if (flag == "--threads") {
    return ParseNumber(flag, value, &options.threads);
  } else {
    return absl::InvalidArgumentError(absl::StrCat("unknown option ", flag));
  }
  return absl::OkStatus();
}

// Options are "--flag value" or "--flag=value".
absl::StatusOr<Command> Parse(const std::vector<std::string>& arguments) {
  Command command;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::size_t equals = arguments[i].find('=');
    if (equals != std::string::npos) {
      AUTOLOCO_RETURN_IF_ERROR(SetFlag(arguments[i].substr(0, equals), arguments[i].substr(equals + 1), &command));
    } else if (i + 1 == arguments.size()) {
      return absl::InvalidArgumentError(absl::StrCat(arguments[i], ": expected a value"));
    } else {
      AUTOLOCO_RETURN_IF_ERROR(SetFlag(arguments[i], arguments[i + 1], &command));
      ++i;
    }
  }
  if (command.model.empty()) return absl::InvalidArgumentError("--model: expected a folder, found nothing");
  return command;
}

int Fail(const absl::Status& status, int exit_code) {
  std::fprintf(stderr, "autoloco-worker generate: %s\n", std::string(status.message()).c_str());
  return exit_code;
}

}  // namespace

int RunGenerateCommand(const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && (arguments[0] == "--help" || arguments[0] == "-h")) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  const absl::StatusOr<Command> command = Parse(arguments);
  if (!command.ok()) return Fail(command.status(), 2);
  const absl::StatusOr<Model> model = ReadModelFolder(command->model);
  if (!model.ok()) return Fail(model.status(), 2);
  const absl::StatusOr<std::string> text = GenerateText(model->shape, model->parameters.values(), command->options);
  if (!text.ok()) return Fail(text.status(), text.status().code() == absl::StatusCode::kInvalidArgument ? 2 : 1);
  const std::string whole = absl::StrCat(command->options.prompt, *text, "\n");
  return std::fwrite(whole.data(), 1, whole.size(), stdout) == whole.size() ? 0 : 1;
}

}  // namespace autoloco::worker

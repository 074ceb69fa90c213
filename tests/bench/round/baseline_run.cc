#include "tests/bench/round/baseline_run.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "tests/support/process.h"
#include "tests/support/temp_folder.h"

namespace autoloco::bench {
namespace {

constexpr absl::Duration kLimit = absl::Minutes(30);
constexpr std::uint64_t kJsonBytesMax = 1 << 20;

absl::StatusOr<double> NumberOf(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) {
    return absl::InvalidArgumentError(absl::StrCat("the baseline's file has no number ", key));
  }
  return found->get<double>();
}

}  // namespace

absl::StatusOr<Measurement> ParseBaselineJson(absl::string_view text) {
  const nlohmann::json list = nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!list.is_array() || list.size() != 1 || !list[0].is_object()) {
    return absl::InvalidArgumentError("the baseline's file is no list of one object");
  }
  Measurement run;
  AUTOLOCO_ASSIGN_OR_RETURN(run.round_seconds, NumberOf(list[0], "round_seconds"));
  AUTOLOCO_ASSIGN_OR_RETURN(run.bytes_up, NumberOf(list[0], "bytes_up"));
  AUTOLOCO_ASSIGN_OR_RETURN(run.bytes_down, NumberOf(list[0], "bytes_down"));
  AUTOLOCO_ASSIGN_OR_RETURN(run.server_peak_rss_bytes, NumberOf(list[0], "server_peak_rss_bytes"));
  return run;
}

absl::StatusOr<Measurement> RunBaseline(const std::string& command, std::uint64_t params, std::uint32_t workers,
                                        std::uint32_t rounds) {
  const TempFolder folder;
  const std::string json = folder.File("baseline.json");
  AUTOLOCO_ASSIGN_OR_RETURN(const std::unique_ptr<test::Process> shell,
                            test::Process::Start({"/bin/sh", "-c",
                                                  absl::StrCat("exec ", command, " --params ", params, " --workers ",
                                                               workers, " --rounds ", rounds, " --json ", json)}));
  AUTOLOCO_ASSIGN_OR_RETURN(const int code, shell->Wait(kLimit));
  if (code != 0) {
    return absl::InternalError(absl::StrCat("the baseline ended with ", code, ":\n", shell->Output(), shell->Log()));
  }
  AUTOLOCO_ASSIGN_OR_RETURN(const std::string text, ReadFile(json, kJsonBytesMax));
  return ParseBaselineJson(text);
}

}  // namespace autoloco::bench

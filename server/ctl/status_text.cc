#include "server/ctl/status_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/util/json_util.h"
#include "server/ctl/text_table.h"

namespace autoloco::server {
namespace {

// "training" for PHASE_TRAINING; the number for a phase that this program does not know.
std::string PhaseName(v1::Status::Phase phase) {
  const std::string& name = v1::Status::Phase_Name(phase);
  constexpr char kPrefix[] = "PHASE_";
  if (name.compare(0, sizeof(kPrefix) - 1, kPrefix) != 0) return absl::StrCat("phase ", static_cast<int>(phase));
  return absl::AsciiStrToLower(name.substr(sizeof(kPrefix) - 1));
}

// Three digits and a decimal prefix: 999 -> "999 B", 1234567 -> "1.23 MB".
std::string Bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 7> kUnits = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes);
  std::size_t index = 0;
  while (value >= 999.5 && index + 1 < kUnits.size()) {
    value /= 1000;
    ++index;
  }
  if (index == 0) return absl::StrFormat("%.0f B", value);
  return absl::StrFormat("%.*f %s", value < 9.995 ? 2 : (value < 99.95 ? 1 : 0), value, kUnits[index]);
}

// "3 d 04:05:06", "2:03:04", "4:05".
std::string Uptime(double seconds) {
  const auto total = static_cast<std::uint64_t>(std::clamp(seconds, 0.0, 1e12));
  const std::uint64_t minutes = total / 60 % 60;
  const std::uint64_t hours = total / 3600 % 24;
  const std::uint64_t days = total / 86400;
  if (days > 0) return absl::StrFormat("%d d %02d:%02d:%02d", days, hours, minutes, total % 60);
  if (hours > 0) return absl::StrFormat("%d:%02d:%02d", hours, minutes, total % 60);
  return absl::StrFormat("%d:%02d", minutes, total % 60);
}

std::string LossLine(const v1::Status& status) {
  if (status.evaluations_size() == 0) return "none yet";
  const v1::EvaluationPoint& first = status.evaluations(0);
  const v1::EvaluationPoint& last = status.evaluations(status.evaluations_size() - 1);
  if (status.evaluations_size() == 1) {
    return absl::StrFormat("%.4f nats a token, held out (version %d)", first.loss(), first.version());
  }
  return absl::StrFormat("%.4f -> %.4f nats a token, held out (version %d -> %d)", first.loss(), last.loss(),
                         first.version(), last.version());
}

std::string OrNone(const std::string& text) { return text.empty() ? "none yet" : Printable(text); }

std::string Summary(const v1::Status& status) {
  const double percent = status.inner_steps_total() == 0 ? 0
                                                         : 100.0 * static_cast<double>(status.inner_steps_done()) /
                                                               static_cast<double>(status.inner_steps_total());
  std::string text;
  absl::StrAppend(&text, "run         ", OrNone(status.run_id()), ", server ", Printable(status.server_version()),
                  ", up ", Uptime(status.uptime_seconds()), "\n");
  absl::StrAppend(&text, "phase       ", PhaseName(status.phase()));
  if (!status.reason().empty()) absl::StrAppend(&text, ": ", Printable(status.reason()));
  absl::StrAppendFormat(&text, "\nprogress    version %d, round %d, %d committed, %d aborted\n", status.version(),
                        status.round(), status.rounds_committed(), status.rounds_aborted());
  absl::StrAppendFormat(&text, "inner steps %d of %d (%.1f %%), interval %d, %d of all workers\n",
                        status.inner_steps_done(), status.inner_steps_total(), percent, status.interval_steps(),
                        status.worker_inner_steps());
  if (!status.interval_reason().empty()) {
    absl::StrAppend(&text, "interval    ", Printable(status.interval_reason()), "\n");
  }
  absl::StrAppendFormat(&text, "workers     %d alive, %d assigned, %d contributed, %d applied in the last commit\n",
                        status.alive(), status.assigned(), status.contributed(), status.applied());
  if (status.has_deadline_seconds()) {
    absl::StrAppendFormat(&text, "deadline    in %.1f s: %s\n", std::max(0.0, status.deadline_seconds()),
                          Printable(status.deadline_reason()));
  } else if (!status.deadline_reason().empty()) {
    absl::StrAppend(&text, "deadline    ", Printable(status.deadline_reason()), "\n");
  }
  const v1::TokenLedger& ledger = status.ledger();
  absl::StrAppendFormat(&text, "tokens      %d leased: %d applied, %d late, %d rejected, %d lost, %d unused, %d out\n",
                        ledger.leased(), ledger.applied(), ledger.late(), ledger.rejected(), ledger.lost(),
                        ledger.unused(), ledger.outstanding());
  absl::StrAppend(&text, "loss        ", LossLine(status), "\n");
  absl::StrAppend(&text, "bytes       ", Bytes(status.bytes_up()), " up, ", Bytes(status.bytes_down()), " down, ",
                  status.parameters(), " parameters\n");
  absl::StrAppend(&text, "digest      ", OrNone(status.params_digest()), "\n");
  if (!status.view_digest().empty() && status.view_digest() != status.params_digest()) {
    absl::StrAppend(&text, "view        ", Printable(status.view_digest()), ", what every worker holds\n");
  }
  absl::StrAppend(&text, "checkpoint  ", OrNone(status.checkpoint()), "\n");
  return text;
}

Row WorkerRow(const v1::WorkerStatus& worker) {
  return {Printable(worker.name()),
          absl::StrCat(worker.incarnation()),
          Printable(worker.state()),
          absl::StrCat(worker.base_version()),
          absl::StrCat(worker.steps_done(), "/", worker.steps_target()),
          absl::StrFormat("%.4f", worker.loss()),
          absl::StrFormat("%.0f", worker.tokens_per_second()),
          absl::StrFormat("%.0f %%", 100 * worker.compute_share()),
          absl::StrFormat("%.3f", worker.share()),
          absl::StrFormat("%.1f s ago", worker.last_seen_seconds()),
          Printable(worker.reason())};
}

}  // namespace

std::string StatusTable(const v1::Status& status) {
  std::string text = Summary(status);
  if (status.workers_size() == 0) return text;
  std::vector<Row> rows = {
      {"WORKER", "LIFE", "STATE", "VERSION", "STEPS", "LOSS", "TOKENS/S", "COMPUTING", "SHARE", "HEARD", "REASON"}};
  for (const v1::WorkerStatus& worker : status.workers()) rows.push_back(WorkerRow(worker));
  return absl::StrCat(text, "\n",
                      Columns(rows, {true, false, true, false, false, false, false, false, false, false, true}));
}

absl::StatusOr<std::string> StatusJson(const v1::Status& status) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  const auto printed = google::protobuf::util::MessageToJsonString(status, &text, options);
  if (!printed.ok()) {
    return absl::InternalError(absl::StrCat("the status cannot be written as JSON: ", printed.ToString()));
  }
  return text;
}

}  // namespace autoloco::server

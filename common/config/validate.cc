#include "common/config/validate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/config/address.h"
#include "common/config/convert.h"
#include "common/config/intervals.h"
#include "common/config/settings.h"
#include "common/config/value.h"
#include "common/tensor/decoder.h"

namespace autoloco {
namespace {

constexpr std::uint32_t kByteTokens = 256;
// 10 Mbit/s: what a warning about the time of a transfer supposes.
constexpr double kSlowLinkBytesPerSecond = 1.25e6;

// Collects problems under one section: "run.", or "" for a RunConfig on its own.
class Checker {
 public:
  Checker(absl::string_view section, Validation* validation) : section_(section), validation_(validation) {}

  std::string Key(absl::string_view key) const { return absl::StrCat(section_, key); }

  template <typename... Parts>
  void Error(absl::string_view key, const Parts&... parts) {
    validation_->errors.push_back({Key(key), absl::StrCat(parts...)});
  }
  template <typename... Parts>
  void Warning(absl::string_view key, const Parts&... parts) {
    validation_->warnings.push_back({Key(key), absl::StrCat(parts...)});
  }

 private:
  const std::string section_;
  Validation* const validation_;
};

void CheckModelAndData(const v1::RunConfig& run, Checker* check) {
  const absl::Status shape = ValidateDecoderShape(ToDecoderShape(run.model()));
  if (!shape.ok()) check->Error("model", shape.message());
  if (run.data().tokenizer() != v1::DataConfig::TOKENIZER_BYTES) return;
  const std::uint32_t vocab_size = run.model().vocab_size();
  if (vocab_size < kByteTokens) {
    check->Error("model.vocab_size", "expected at least 256 with ", check->Key("data.tokenizer"), " bytes, found ",
                 vocab_size);
  } else if (vocab_size > kByteTokens) {
    check->Warning("model.vocab_size", check->Key("data.tokenizer"), " bytes uses 256 of ", vocab_size,
                   " rows of the embedding");
  }
}

void CheckRounds(const v1::RoundsConfig& rounds, Checker* check) {
  if (rounds.heartbeat_seconds() > rounds.lease_seconds() / 3) {
    check->Error("rounds.heartbeat_seconds", "expected at most a third of ", check->Key("rounds.lease_seconds"), " (",
                 rounds.lease_seconds(), "), so that one lost report does not end a lease, found ",
                 rounds.heartbeat_seconds());
  }
  if (rounds.start_workers() == 0) return;
  if (rounds.start_workers() < rounds.min_workers()) {
    check->Error("rounds.start_workers", "expected 0 or at least ", check->Key("rounds.min_workers"), " (",
                 rounds.min_workers(), "), found ", rounds.start_workers());
  } else if (rounds.strict() && rounds.start_workers() > rounds.min_workers()) {
    check->Error("rounds.start_workers", "expected 0 or ", check->Key("rounds.min_workers"), " (", rounds.min_workers(),
                 "), since a strict run has exactly these workers, found ", rounds.start_workers());
  }
}

void CheckInterval(const v1::RunConfig& run, Checker* check) {
  const v1::IntervalConfig& interval = run.interval();
  const StepLimits limits = ToStepLimits(interval);
  if (limits.least > interval.steps()) {
    check->Error("interval.steps_min", "expected at most ", check->Key("interval.steps"), " (", interval.steps(),
                 "), found ", interval.steps_min());
  }
  if (limits.most < interval.steps()) {
    check->Error("interval.steps_max", "expected at least ", check->Key("interval.steps"), " (", interval.steps(),
                 "), found ", interval.steps_max());
  }
  if (interval.policy() == v1::IntervalConfig::POLICY_RANDOM && interval.target_rounds() == 0) {
    check->Error("interval.target_rounds", "expected the number of rounds under policy random, found 0");
  }
  if (interval.target_rounds() > run.total_inner_steps()) {
    check->Error("interval.target_rounds", "expected at most ", check->Key("total_inner_steps"), " (",
                 run.total_inner_steps(), "), found ", interval.target_rounds());
  }
  const absl::StatusOr<std::vector<std::uint32_t>> replay = ParseIntervals(interval.replay());
  if (!replay.ok()) {
    check->Error("interval.replay", replay.status().message());
  } else if (interval.policy() == v1::IntervalConfig::POLICY_REPLAY && replay->empty()) {
    check->Error("interval.replay", "expected the intervals under policy replay, found none");
  }
  const bool corrected = run.outer().correction() != v1::OuterConfig::CORRECTION_AUTO &&
                         run.outer().correction() != v1::OuterConfig::CORRECTION_NONE;
  if (!run.outer().nesterov() && corrected) {
    check->Error("outer.correction", "expected auto or none without ", check->Key("outer.nesterov"),
                 ", whose form it corrects");
  }
}

// What a value of a delta takes on the wire. Quantized: the entropy of rounded Gaussian values, and a little.
double BytesPerValue(const v1::CodecConfig& codec) {
  switch (codec.delta()) {
    case v1::CodecConfig::DELTA_BF16: return 2;
    case v1::CodecConfig::DELTA_INT8: return 1;
    case v1::CodecConfig::DELTA_QUANTIZED: return std::max(0.5, 2.2 - std::log2(codec.step())) / 8;
    default: return 4;
  }
}

// A deadline that somebody has set by hand, against what it must leave time for.
void CheckDeadline(const v1::RunConfig& run, Checker* check) {
  const double deadline = run.membership().deadline_seconds();
  if (deadline == 0 || run.rounds().strict()) return;
  if (deadline < run.rounds().heartbeat_seconds()) {
    check->Warning("membership.deadline_seconds", deadline, " is less than ", check->Key("rounds.heartbeat_seconds"),
                   " (", run.rounds().heartbeat_seconds(), "): rounds close before a worker has reported once");
  } else if (deadline < run.rounds().lease_seconds()) {
    check->Warning("membership.deadline_seconds", deadline, " is less than ", check->Key("rounds.lease_seconds"), " (",
                   run.rounds().lease_seconds(), "): rounds close before it is known whether a silent worker lives");
  }
  const absl::StatusOr<Layout> layout = MakeDecoderLayout(ToDecoderShape(run.model()));
  if (!layout.ok()) return;  // an error of its own
  const double seconds =
      static_cast<double>(layout->value_count()) * BytesPerValue(run.codec()) / kSlowLinkBytesPerSecond;
  if (deadline < seconds) {
    check->Warning("membership.deadline_seconds", deadline, " is less than the ", std::ceil(seconds),
                   " s that a delta of ", layout->value_count(), " values takes on a link of 10 Mbit/s");
  }
}

void CheckMembership(const v1::RunConfig& run, Checker* check) {
  const v1::MembershipConfig& membership = run.membership();
  if (run.rounds().strict() && membership.late() == v1::MembershipConfig::LATE_APPLY) {
    check->Error("membership.late", "expected drop in a strict run, where no delta is late, found apply");
  }
  if (run.outer().norm_rounds_min() > run.outer().norm_rounds()) {
    check->Error("outer.norm_rounds_min", "expected at most ", check->Key("outer.norm_rounds"), " (",
                 run.outer().norm_rounds(), "), found ", run.outer().norm_rounds_min());
  }
  CheckDeadline(run, check);
}

void CheckRun(const v1::RunConfig& run, Checker* check) {
  CheckModelAndData(run, check);
  CheckRounds(run.rounds(), check);
  CheckInterval(run, check);
  CheckMembership(run, check);
  const std::uint64_t total = run.total_inner_steps();
  if (run.inner().warmup_steps() > total) {
    check->Warning("inner.warmup_steps", run.inner().warmup_steps(), " is more than ", check->Key("total_inner_steps"),
                   " (", total, "): the learning rate never reaches its peak");
  }
  if (run.interval().steps() > total) {
    check->Warning("interval.steps", run.interval().steps(), " is more than ", check->Key("total_inner_steps"), " (",
                   total, "): the run is a single round");
  }
}

// The address, when the text is one; problems go to `check`. `insecure_key` names the setting that lifts the loopback
// rule.
struct AddressRule {
  absl::string_view key;
  absl::string_view insecure_key;
  bool insecure;
};
absl::StatusOr<Address> CheckAddress(const AddressRule& rule, absl::string_view text, Checker* check) {
  absl::StatusOr<Address> address = ParseAddress(text);
  if (!address.ok()) {
    check->Error(rule.key, address.status().message());
  } else if (!address->is_loopback && !rule.insecure) {
    check->Error(rule.key, "expected a loopback address, found ", Quoted(text),
                 ", where everything would travel unencrypted; --insecure (", rule.insecure_key,
                 ": true) allows it on a network you trust");
  }
  return address;
}

void CheckServer(const v1::ServerConfig& config, Checker* check) {
  const v1::ServerOptions& server = config.server();
  const AddressRule listen_rule = {"listen", "server.insecure", server.insecure()};
  const absl::StatusOr<Address> listen = CheckAddress(listen_rule, server.listen(), check);
  if (!server.metrics_listen().empty()) {
    const AddressRule rule = {"metrics_listen", "server.insecure", server.insecure()};
    const absl::StatusOr<Address> metrics = CheckAddress(rule, server.metrics_listen(), check);
    if (listen.ok() && metrics.ok() && listen->port != 0 && listen->port == metrics->port &&
        listen->host == metrics->host) {
      check->Error("metrics_listen", "expected another port than server.listen (", server.listen(), "), found ",
                   server.metrics_listen());
    }
  }
  const v1::RoundsConfig& rounds = config.run().rounds();
  for (const auto& [name, count] : {std::pair<absl::string_view, std::uint32_t>{"min_workers", rounds.min_workers()},
                                    {"start_workers", rounds.start_workers()}}) {
    if (server.max_workers() >= count) continue;
    check->Error("max_workers", "expected at least run.rounds.", name, " (", count, "), found ", server.max_workers());
    break;
  }
  if (server.max_push_bytes_in_flight() < server.max_chunk_bytes()) {
    check->Error("max_push_bytes_in_flight", "expected at least server.max_chunk_bytes (", server.max_chunk_bytes(),
                 "), found ", server.max_push_bytes_in_flight());
  }
}

}  // namespace

Validation ValidateServerConfig(const v1::ServerConfig& config) {
  Validation validation;
  Checker run("run.", &validation);
  CheckRun(config.run(), &run);
  Checker server("server.", &validation);
  CheckServer(config, &server);
  return validation;
}

Validation ValidateWorkerConfig(const v1::WorkerConfig& config) {
  Validation validation;
  Checker check("worker.", &validation);
  const v1::WorkerOptions& worker = config.worker();
  const AddressRule rule = {"server", "worker.insecure", worker.insecure()};
  const absl::StatusOr<Address> server = CheckAddress(rule, worker.server(), &check);
  if (server.ok() && server->port == 0) {
    check.Error("server", "expected host:port with a port from 1 to 65535, found ", Quoted(worker.server()));
  }
  return validation;
}

absl::Status ValidateReceivedRun(const v1::RunConfig& run) {
  const SettingTable table(v1::RunConfig::descriptor());
  v1::RunConfig read_back;
  for (const SettingField& setting : table.settings()) {
    if (!IsGiven(setting, run)) {
      return absl::InvalidArgumentError(
          absl::StrCat(setting.path, ": expected ", Expectation(setting), ", found it not set"));
    }
    const absl::Status read = SetFromText(setting, ToText(setting, run), &read_back);
    if (!read.ok()) return absl::InvalidArgumentError(absl::StrCat(setting.path, ": ", read.message()));
  }
  Validation validation;
  Checker check("", &validation);
  CheckRun(run, &check);
  if (validation.errors.empty()) return absl::OkStatus();
  const Problem& first = validation.errors.front();
  return absl::InvalidArgumentError(absl::StrCat(first.key, ": ", first.message));
}

}  // namespace autoloco

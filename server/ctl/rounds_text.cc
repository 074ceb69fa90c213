#include "server/ctl/rounds_text.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/util/json_util.h"
#include "server/ctl/text_table.h"

namespace autoloco::server {
namespace {

using google::protobuf::FieldDescriptor;

// The shortest text that reads back to the same number.
std::string ExactNumber(double value) {
  for (int digits = 6; digits < 17; ++digits) {
    const std::string text = absl::StrFormat("%.*g", digits, value);
    double back = 0;
    if (absl::SimpleAtod(text, &back) && back == value) return text;
  }
  return absl::StrFormat("%.17g", value);
}

// One field of a record. `record` has no fields but numbers, switches and text without commas.
std::string Cell(const v1::RoundRecord& record, const FieldDescriptor* field) {
  const google::protobuf::Reflection* const reflection = record.GetReflection();
  if (field->has_presence() && !reflection->HasField(record, field)) return "";
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE: return ExactNumber(reflection->GetDouble(record, field));
    case FieldDescriptor::CPPTYPE_UINT32: return absl::StrCat(reflection->GetUInt32(record, field));
    case FieldDescriptor::CPPTYPE_UINT64: return absl::StrCat(reflection->GetUInt64(record, field));
    case FieldDescriptor::CPPTYPE_BOOL: return reflection->GetBool(record, field) ? "true" : "false";
    default: return Printable(reflection->GetString(record, field));
  }
}

std::string Number(bool known, double value, int digits) {
  return known ? absl::StrFormat("%.*g", digits, value) : "-";
}

Row TableRow(const v1::RoundRecord& round) {
  const std::string correction =
      round.final_average() ? "average" : (round.plain() ? "plain" : absl::StrFormat("%.3f", round.a()));
  return {absl::StrCat(round.round()),
          absl::StrCat(round.first_inner_step()),
          absl::StrCat(round.inner_steps()),
          absl::StrFormat("%.3g", round.learning_rate()),
          absl::StrFormat("%.3f", round.ratio()),
          correction,
          absl::StrCat(round.contributors(), "/", round.assigned()),
          Number(round.has_loss_mean(), round.loss_mean(), 5),
          Number(round.has_agreement(), round.agreement(), 3),
          Number(round.has_noise_steps(), round.noise_steps(), 3),
          absl::StrFormat("%.4g", round.mean_delta_norm()),
          absl::StrFormat("%.1f", round.seconds()),
          Printable(round.reason())};
}

}  // namespace

std::string RoundsTable(const v1::Rounds& rounds) {
  std::vector<Row> rows = {{"ROUND", "FROM STEP", "INTERVAL", "RATE", "R", "CORRECTION", "WORKERS", "LOSS", "AGREEMENT",
                            "NOISE STEPS", "DELTA", "SECONDS", "REASON"}};
  for (const v1::RoundRecord& round : rounds.rounds()) rows.push_back(TableRow(round));
  std::vector<bool> left(rows.front().size(), false);
  left.back() = true;
  return Columns(rows, left);
}

std::string RoundsCsv(const v1::Rounds& rounds) {
  const google::protobuf::Descriptor* const descriptor = v1::RoundRecord::descriptor();
  std::vector<std::string> cells;
  for (int i = 0; i < descriptor->field_count(); ++i) cells.push_back(descriptor->field(i)->name());
  std::string text = absl::StrCat(absl::StrJoin(cells, ","), "\n");
  for (const v1::RoundRecord& round : rounds.rounds()) {
    cells.clear();
    for (int i = 0; i < descriptor->field_count(); ++i) cells.push_back(Cell(round, descriptor->field(i)));
    absl::StrAppend(&text, absl::StrJoin(cells, ","), "\n");
  }
  return text;
}

absl::StatusOr<std::string> RoundsJson(const v1::Rounds& rounds) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  const auto printed = google::protobuf::util::MessageToJsonString(rounds, &text, options);
  if (!printed.ok()) {
    return absl::InternalError(absl::StrCat("the rounds cannot be written as JSON: ", printed.ToString()));
  }
  return text;
}

}  // namespace autoloco::server

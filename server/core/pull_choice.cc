#include "server/core/pull_choice.h"

#include "absl/strings/str_cat.h"

namespace autoloco::server {
namespace {

bool IsKept(Version version, const PullSituation& situation) {
  return !situation.lossless && version >= situation.oldest_broadcast && version <= situation.current;
}

PullChoice Serve(PullForm form, Version version, const PullSituation& situation) {
  PullChoice choice;
  choice.form = form;
  choice.version = version;
  if (form != PullForm::kLive) choice.view_digest = ViewDigestOf(version, situation);
  return choice;
}

// A part of what the worker has seen the header of.
PullChoice ChoosePart(const PullPart& part, const PullSituation& situation) {
  const bool there = part.form == PullForm::kLive   ? !situation.lossless
                     : part.form == PullForm::kFull ? situation.lossless && part.version == situation.current
                                                    : IsKept(part.version, situation);
  if (there) return Serve(part.form, part.form == PullForm::kLive ? situation.current : part.version, situation);
  PullChoice choice;
  choice.kind = PullChoice::Kind::kRefuse;
  choice.status = absl::AbortedError(absl::StrCat("pull: form ", PullFormName(part.form), " of version ", part.version,
                                                  " is gone; current is ", situation.current));
  return choice;
}

// Whether the worker has read blocks of the version that is being made, and nothing can be added to them yet.
bool IsAhead(const PullOpened& pull, const PullSituation& situation) {
  if (!situation.committing) return false;
  if (pull.held_mixed) return pull.held_version == situation.current;
  return !pull.held_digest.empty() && pull.held_version == situation.current + 1;
}

}  // namespace

std::string ViewDigestOf(Version version, const PullSituation& situation) {
  if (version == situation.current) return situation.current_digest;
  if (version == 0) return situation.initial_digest;
  const std::uint64_t back = situation.current - version;  // rounds from the newest one
  if (version > situation.current || back >= situation.history.size()) return "";
  const RoundRecord& record = situation.history[situation.history.size() - 1 - back];
  return record.round + 1 == version ? record.view_digest : "";
}

PullChoice ChoosePull(const PullOpened& pull, const PullSituation& situation) {
  if (pull.part.form != PullForm::kUnspecified) return ChoosePart(pull.part, situation);
  const bool whole = !pull.held_mixed && !pull.held_digest.empty();
  const std::string known = whole ? ViewDigestOf(pull.held_version, situation) : "";
  const bool matches = !known.empty() && known == pull.held_digest;
  if (matches && pull.held_version == situation.current) return Serve(PullForm::kNothing, pull.held_version, situation);
  PullChoice choice;
  if (situation.lossless) {
    choice = Serve(PullForm::kFull, situation.current, situation);
  } else if (IsAhead(pull, situation)) {
    choice.kind = PullChoice::Kind::kPark;
  } else if ((matches || pull.held_mixed) && pull.held_version < situation.current &&
             IsKept(pull.held_version + 1, situation)) {
    choice = Serve(PullForm::kBroadcast, pull.held_version + 1, situation);
  } else {
    choice = Serve(PullForm::kLive, situation.current, situation);
  }
  choice.mismatch = !known.empty() && !matches;
  return choice;
}

}  // namespace autoloco::server

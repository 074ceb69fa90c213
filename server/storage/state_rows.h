// The tables of the state database: what one row of each holds. A released list of columns is never changed; a change
// is another schema version.
#ifndef AUTOLOCO_SERVER_STORAGE_STATE_ROWS_H_
#define AUTOLOCO_SERVER_STORAGE_STATE_ROWS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <type_traits>

#include "server/core/commit_method.h"
#include "server/core/records.h"
#include "server/core/types.h"

namespace autoloco::server {

// Tables of one row have the key 1.

// run: which run this is. Written once.
struct RunRow {
  std::uint64_t id = 1;
  std::string run_id;
  std::string initial_digest;  // params_digest of version 0; empty: it began before this database
};
template <typename Row, typename Visitor>
requires std::is_same_v<std::remove_const_t<Row>, RunRow>
void VisitColumns(Row& row, Visitor visit) {
  visit("id", row.id);
  visit("run_id", row.run_id);
  visit("initial_digest", row.initial_digest);
}

// progress: RunRecord. One row.
struct ProgressRow {
  std::uint64_t id = 1;
  RunRecord record;
};
template <typename Row, typename Visitor>
requires std::is_same_v<std::remove_const_t<Row>, ProgressRow>
void VisitColumns(Row& row, Visitor visit) {
  auto& progress = row.record.progress;
  visit("id", row.id);
  visit("version", progress.version);
  visit("inner_steps_done", progress.inner_steps_done);
  visit("next_incarnation", progress.next_incarnation);
  visit("rounds_aborted", progress.rounds_aborted);
  visit("worker_inner_steps", progress.worker_inner_steps);
  visit("next_sample", progress.next_sample);
  visit("next_sample_by_worker", progress.next_sample_by_worker);
  visit("interval", progress.interval);
  visit("participants", row.record.participants);
  visit("data", row.record.data);
}

// ledger: LedgerRecord, in tokens. One row.
struct LedgerRow {
  std::uint64_t id = 1;
  LedgerTotals totals;
};
template <typename Row, typename Visitor>
requires std::is_same_v<std::remove_const_t<Row>, LedgerRow>
void VisitColumns(Row& row, Visitor visit) {
  visit("id", row.id);
  visit("leased", row.totals.leased);
  visit("applied", row.totals.applied);
  visit("late", row.totals.late);
  visit("rejected", row.totals.rejected);
  visit("lost", row.totals.lost);
  visit("unused", row.totals.unused);
}

// checkpoints: the versions that were stored. Which of them still are, the checkpoints folder says.
struct CheckpointRow {
  Version version = 0;
};
template <typename Row, typename Visitor>
requires std::is_same_v<std::remove_const_t<Row>, CheckpointRow>
void VisitColumns(Row& row, Visitor visit) { visit("version", row.version); }

// ended: RunEvaluatedRecord.
struct EndedRow {
  Version version = 0;
};
template <typename Row, typename Visitor>
requires std::is_same_v<std::remove_const_t<Row>, EndedRow>
void VisitColumns(Row& row, Visitor visit) { visit("version", row.version); }

// workers: the newest life of each.
template <typename Row, typename Visitor>
requires std::is_same_v<std::remove_const_t<Row>, MemberRecord>
void VisitColumns(Row& row, Visitor visit) {
  visit("name", row.name);
  visit("incarnation", row.member.incarnation);
  visit("alive", row.member.alive);
  visit("ready", row.member.ready);
  visit("reason", row.member.reason);
  visit("text", row.member.text);
  visit("tokens", row.member.tokens);
  visit("step_seconds", row.member.step_seconds);
  visit("overhead_seconds", row.member.overhead_seconds);
}

// rounds: every attempt at every round. The digests of the record are columns of their own.
struct RoundRow {
  RoundState round;            // but for its entries and its decision
  std::string state = "open";  // then decided, then committed; or aborted; or ended, where nothing was trained any more
  OuterStep step;              // once decided
  CommitMethod method;         // once decided
  CommitStats stats;           // once committed
  std::string reason;          // where aborted
};
template <typename Row, typename Visitor>
requires std::is_same_v<std::remove_const_t<Row>, RoundRow>
void VisitColumns(Row& row, Visitor visit) {
  visit("round", row.round.number);
  visit("attempt", row.round.attempt);
  visit("state", row.state);
  visit("inner_steps", row.round.inner_steps);
  visit("finishing", row.round.finishing);
  visit("cursors_before", row.round.cursors_before);
  visit("record", row.round.record);
  visit("step", row.step);
  visit("method", row.method);
  visit("params_digest", row.round.record.params_digest);
  visit("view_digest", row.round.record.view_digest);
  visit("stats", row.stats);
  visit("reason", row.reason);
}

// assignments: each worker's part of each attempt at a round.
struct AssignmentRow {
  std::uint64_t attempt = 0;
  EntryRecord record;
};
template <typename Row, typename Visitor>
requires std::is_same_v<std::remove_const_t<Row>, AssignmentRow>
void VisitColumns(Row& row, Visitor visit) {
  auto& entry = row.record.entry;
  visit("round", row.record.round);
  visit("attempt", row.attempt);
  visit("worker", row.record.worker);
  visit("incarnation", entry.incarnation);
  visit("base_round", entry.assignment.round);
  visit("inner_steps", entry.assignment.inner_steps);
  visit("first_inner_step", entry.assignment.first_inner_step);
  visit("first_sample", entry.assignment.first_sample);
  visit("sample_count", entry.assignment.sample_count);
  visit("evaluation_part", entry.assignment.evaluation_part);
  visit("evaluation_parts", entry.assignment.evaluation_parts);
  visit("delivered", entry.delivered);
  visit("rejected", entry.rejected);
  visit("delivered_by", entry.delivered_by);
  visit("payload_digest", entry.payload_digest);
  visit("payload_bytes", entry.payload_bytes);
  visit("report", entry.report);
  visit("evaluation", entry.evaluation);
  visit("share", entry.share);
  visit("weight", entry.weight);
  visit("clip", entry.clip);
}

// contributions: what a decided round sums, in order.
struct ContributionRow {
  Round round = 0;
  std::uint64_t position = 0;
  StartCommit::Contribution contribution;
};
template <typename Row, typename Visitor>
requires std::is_same_v<std::remove_const_t<Row>, ContributionRow>
void VisitColumns(Row& row, Visitor visit) {
  visit("round", row.round);
  visit("position", row.position);
  visit("push_round", row.contribution.push.round);
  visit("worker", row.contribution.push.worker.name);
  visit("incarnation", row.contribution.push.worker.incarnation);
  visit("fragment", row.contribution.push.fragment);
  visit("weight", row.contribution.weight);
}

// pushes: what became of every delta that arrived whole. `live`: the core still answers from it.
struct PushRow {
  PushRecord record;
  bool live = true;
};
template <typename Row, typename Visitor>
requires std::is_same_v<std::remove_const_t<Row>, PushRow>
void VisitColumns(Row& row, Visitor visit) {
  visit("round", row.record.key.round);
  visit("worker", row.record.key.worker.name);
  visit("incarnation", row.record.key.worker.incarnation);
  visit("fragment", row.record.key.fragment);
  visit("digest", row.record.push.payload_digest);
  visit("outcome", row.record.push.outcome);
  visit("reason", row.record.push.reason);
  visit("payload_bytes", row.record.payload_bytes);
  visit("live", row.live);
}

// leases: the token ledger, one row an assignment; in tokens.
template <typename Row, typename Visitor>
requires std::is_same_v<std::remove_const_t<Row>, LeaseRecord>
void VisitColumns(Row& row, Visitor visit) {
  visit("round", row.key.round);
  visit("attempt", row.key.attempt);
  visit("worker", row.key.worker.name);
  visit("incarnation", row.key.worker.incarnation);
  visit("leased", row.lease.leased);
  visit("trained", row.lease.trained);
  visit("fate", row.lease.fate);
}

// evaluations: the held-out loss of every version.
template <typename Row, typename Visitor>
requires std::is_same_v<std::remove_const_t<Row>, EvaluationPoint>
void VisitColumns(Row& row, Visitor visit) {
  visit("version", row.version);
  visit("inner_step", row.inner_step);
  visit("loss", row.loss);
  visit("tokens", row.tokens);
}

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_STATE_ROWS_H_

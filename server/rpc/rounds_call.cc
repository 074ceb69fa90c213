#include "server/rpc/rounds_call.h"

#include <algorithm>

namespace autoloco::server {

v1::RoundRecord ToProto(const RoundRecord& record) {
  v1::RoundRecord proto;
  proto.set_round(record.round);
  proto.set_first_inner_step(record.first_inner_step);
  proto.set_inner_steps(record.inner_steps);
  proto.set_interval(record.interval);
  proto.set_reason(ReasonName(record.reason));
  proto.set_learning_rate(record.learning_rate);
  proto.set_momentum_scale(record.momentum_scale);
  proto.set_final_average(record.final_average);
  proto.set_learning_rate_sum(record.learning_rate_sum);
  proto.set_ratio(record.ratio);
  proto.set_a(record.factors.a);
  proto.set_c(record.factors.c);
  proto.set_p(record.factors.p);
  proto.set_g(record.factors.g);
  proto.set_plain(record.factors.plain);
  proto.set_assigned(record.assigned);
  proto.set_contributors(record.contributors);
  proto.set_worker_steps(record.worker_steps);
  proto.set_tokens(record.tokens);
  if (record.loss_mean) proto.set_loss_mean(*record.loss_mean);
  if (record.loss_first) proto.set_loss_first(*record.loss_first);
  if (record.loss_last) proto.set_loss_last(*record.loss_last);
  if (record.gradient_norm) proto.set_gradient_norm(*record.gradient_norm);
  if (record.step_seconds) proto.set_step_seconds(*record.step_seconds);
  proto.set_mean_delta_norm(record.mean_delta_norm);
  proto.set_momentum_norm(record.momentum_norm);
  proto.set_parameter_norm(record.parameter_norm);
  const RoundStatistics& statistics = record.statistics;
  if (statistics.delta_power) proto.set_delta_power(*statistics.delta_power);
  if (statistics.mean_power) proto.set_mean_power(*statistics.mean_power);
  if (statistics.noise) proto.set_noise(*statistics.noise);
  if (statistics.common) proto.set_common(*statistics.common);
  if (statistics.agreement) proto.set_agreement(*statistics.agreement);
  if (statistics.noise_steps) proto.set_noise_steps(*statistics.noise_steps);
  if (statistics.path) proto.set_path(*statistics.path);
  proto.set_seconds(record.seconds);
  proto.set_params_digest(record.params_digest);
  proto.set_view_digest(record.view_digest);
  return proto;
}

v1::Rounds ToProto(const std::vector<RoundRecord>& history, const v1::GetRoundsRequest& request) {
  v1::Rounds rounds;
  rounds.set_rounds_committed(history.size());
  const std::size_t first = std::min<std::uint64_t>(request.first_round(), history.size());
  std::size_t count = request.count_max() == 0 ? kRoundsPerReplyMax : request.count_max();
  count = std::min({count, kRoundsPerReplyMax, history.size() - first});
  for (std::size_t i = first; i < first + count; ++i) *rounds.add_rounds() = ToProto(history[i]);
  return rounds;
}

RoundsReactor::RoundsReactor(const RpcContext* context, const v1::GetRoundsRequest* request, v1::Rounds* reply)
    : request_(request), reply_(reply), record_(context, kAdmin, "GetRounds") {
  context->inbox->Post(RoundsParked{this});
}

void RoundsReactor::Answer(const std::vector<RoundRecord>& history) {
  *reply_ = ToProto(history, *request_);
  End(absl::OkStatus());
}

void RoundsReactor::End(const absl::Status& status) {
  record_.Ended(status.code());
  Finish(ToGrpcStatus(status));
}

}  // namespace autoloco::server

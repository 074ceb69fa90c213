// Recovery as the server does it: newest whole checkpoint, then the recorded decisions with the payloads of the spool.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "tests/sim/server_node.h"

namespace autoloco::sim {

void ServerNode::Recover() {
  ServerDisk& disk = *tools_.disk;
  Version from = 0;
  parameters_ = InitialParameters(tools_.scenario->data_seed, tools_.scenario->core.method);
  for (const auto& [version, checkpoint] : disk.checkpoints) {
    if (!checkpoint.whole || checkpoint.digest != DigestOf(checkpoint.parameters)) {
      tools_.trace->Line("server", "damaged", "checkpoint of version ", version);
      continue;
    }
    from = version;
    parameters_ = checkpoint.parameters;
  }
  std::erase_if(disk.checkpoints, [](const auto& stored) { return !stored.second.whole; });
  // Files that no record knows of are leftovers.
  std::erase_if(disk.spool, [&disk](const auto& file) {
    const server::RecordedPush* recorded = disk.state.pushes.Find(file.first);
    return recorded == nullptr && file.first.round >= disk.state.run.version;
  });
  broadcasts_.clear();
  Publish(from, {});
  broadcasts_.clear();
  if (parameters_.view.empty()) {
    for (std::size_t block = 0; block < kBlocks; ++block) {
      broadcasts_[from].push_back(CodedFp32(parameters_.values, block));
    }
  }
  Replay(from);
  const Checkers::Digests digests = {DigestOf(parameters_.values), DigestOf(parameters_.View())};
  if (tools_.checkers->version() == version_ && tools_.checkers->DigestsOfVersion(version_) != digests) {
    tools_.checkers->Violate("recovery", absl::StrCat("version ", version_, " came back with digest ", digests.params,
                                                      ", view ", digests.view));
  }
}

void ServerNode::Replay(Version from) {
  const ServerDisk& disk = *tools_.disk;
  std::map<Round, const server::StartCommit*> decisions;  // the last one of each round stands
  for (const server::Record& record : disk.log) {
    if (const auto* decided = std::get_if<server::RoundDecidedRecord>(&record)) {
      decisions[decided->decision.round] = &decided->decision;
    }
  }
  for (Round round = from; round < disk.state.run.version; ++round) {
    const auto decision = decisions.find(round);
    if (decision == decisions.end()) {
      tools_.checkers->Violate("recovery", absl::StrCat("round ", round, " is committed and has no decision"));
      return;
    }
    std::vector<WeightedPayload> deltas;
    for (const server::StartCommit::Contribution& contribution : decision->second->contributions) {
      const auto payload = disk.spool.find(contribution.push);
      if (payload == disk.spool.end()) {
        tools_.checkers->Violate("recovery", absl::StrCat("round ", round, ": the delta of ",
                                                          contribution.push.worker.name, " is not in the spool"));
        continue;
      }
      deltas.push_back({contribution.push.worker.name, contribution.weight, payload->second});
    }
    if (tools_.bug == Bug::kReplayReordered) std::reverse(deltas.begin(), deltas.end());
    CodedBlocks broadcast;
    const auto stats = ApplyStep(decision->second->step, decision->second->method, deltas, &parameters_, &broadcast);
    if (!stats.ok()) tools_.checkers->Violate("recovery", std::string(stats.status().message()));
    Publish(round + 1, std::move(broadcast));
  }
  tools_.trace->Line("server", "recovered", "from ", from, " to ", disk.state.run.version);
}

}  // namespace autoloco::sim

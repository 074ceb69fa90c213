#include "tests/sim/faults.h"

namespace autoloco::sim {

const char* FaultName(Fault fault) {
  switch (fault) {
    case Fault::kDelay: return "delay";
    case Fault::kRequestLost: return "request_lost";
    case Fault::kReplyLost: return "reply_lost";
    case Fault::kDuplicated: return "duplicated";
    case Fault::kReordered: return "reordered";
    case Fault::kStreamCut: return "stream_cut";
    case Fault::kTransferCut: return "transfer_cut";
    case Fault::kCorrupted: return "corrupted";
    case Fault::kPartition: return "partition";
    case Fault::kPartitionReset: return "partition_reset";
    case Fault::kServerCrash: return "server_crash";
    case Fault::kServerCrashAtEffect: return "server_crash_at_effect";
    case Fault::kServerPause: return "server_pause";
    case Fault::kServerShutdown: return "server_shutdown";
    case Fault::kWorkerCrash: return "worker_crash";
    case Fault::kWorkerCrashAtEffect: return "worker_crash_at_effect";
    case Fault::kWorkerPause: return "worker_pause";
    case Fault::kWorkerLeave: return "worker_leave";
    case Fault::kWorkerZombie: return "worker_zombie";
    case Fault::kMachineLost: return "machine_lost";
    case Fault::kLateStart: return "late_start";
    case Fault::kClockSkew: return "clock_skew";
    case Fault::kStraggler: return "straggler";
    case Fault::kNormOutlier: return "norm_outlier";
    case Fault::kEviction: return "eviction";
    case Fault::kSlowSync: return "slow_sync";
    case Fault::kFailedWrite: return "failed_write";
    case Fault::kLostSuffix: return "lost_suffix";
    case Fault::kTornPayload: return "torn_payload";
    case Fault::kTornCheckpoint: return "torn_checkpoint";
    case Fault::kFailedCheckpoint: return "failed_checkpoint";
    case Fault::kWorkerDiskLost: return "worker_disk_lost";
    case Fault::kWorkerDiskTorn: return "worker_disk_torn";
    case Fault::kWorkerWriteFailed: return "worker_write_failed";
    case Fault::kCount: break;
  }
  return "?";
}

}  // namespace autoloco::sim

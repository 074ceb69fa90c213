// Drives a WorkerMachine by hand: says what a well-behaved server and engine would, sorts the effects, keeps virtual
// time.
#ifndef AUTOLOCO_TESTS_SUPPORT_MACHINE_SCRIPT_H_
#define AUTOLOCO_TESTS_SUPPORT_MACHINE_SCRIPT_H_

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "worker/core/worker_machine.h"

namespace autoloco::worker {

// Round `round` of 10 steps and 40 samples, all samples and steps before it used; part 0 of `evaluation_parts`.
Assignment IntervalOf(Round round, std::uint32_t evaluation_parts = 0);

class MachineScript {
 public:
  // The first timer has fired: the first session is being opened.
  explicit MachineScript(MachineConfig config = {});

  void Advance(absl::Duration duration) { now_ += duration; }
  // Fires every deadline up to `duration` from now, then stands there.
  void RunTimers(absl::Duration duration);
  void Say(const Event& event);

  // Welcome of the session being opened.
  void Welcome(Incarnation incarnation, Version version, const std::string& run_id = "run-1");
  // The same, with an answer for the delta that Hello named.
  void WelcomeHeld(Incarnation incarnation, Version version, bool send, const std::string& reason = "");
  // Welcome as incarnation 1 at `version`, preparation, pull, Ready.
  void Join(Version version = 0);
  // Join, and the assignment of round `version`.
  void Start(Version version = 0, std::uint32_t evaluation_parts = 0);
  void Assign(const Assignment& assignment);
  void CloseRound(Round round);
  void EndSession(const absl::Status& status);
  // Ends of what the last effect of its kind started. EndPull: the base is the server's `version`, all of it was sent.
  void EndPull(Version version, const std::string& digest);
  // The server sent `form`; `digest` is empty where the base is not confirmed.
  void EndPull(PullForm form, Version version, const std::string& digest);
  // The server's parameters are those held, or others.
  void EndProbe(bool same, Version version, const std::string& digest);
  void FailPull(const absl::Status& status);
  void EndEvaluation();
  void EndTraining();  // and of the encoding, where it starts at once
  void EndEncoding();
  void EndWork(const absl::Status& status);  // evaluation or training, whichever ran last
  void AnswerPush(PushOutcome outcome, const std::string& reason = "");
  void FailPush(const absl::Status& status);

  // Effects of one type since the last Clear, in order.
  template <typename T>
  std::vector<T> All() const {
    std::vector<T> found;
    for (const Effect& effect : effects_) {
      if (const T* one = std::get_if<T>(&effect)) found.push_back(*one);
    }
    return found;
  }
  template <typename T>
  std::optional<T> Last() const {
    const std::vector<T> all = All<T>();
    return all.empty() ? std::nullopt : std::optional<T>(all.back());
  }
  template <typename T>
  int Count() const {
    return static_cast<int>(All<T>().size());
  }
  int Noted(NoteKind kind) const;
  void Clear() { effects_.clear(); }

  WorkerMachine& machine() { return machine_; }
  Ticket session() const { return session_; }
  absl::Time now() const { return now_; }

 private:
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  WorkerMachine machine_;
  std::vector<Effect> effects_;
  Ticket session_ = 0;             // of the last OpenSession
  Ticket pull_ = 0;                // of the last StartPull
  Ticket push_ = 0;                // of the last StartPush
  Round evaluating_ = 0;           // of the last StartEvaluation
  Round training_ = 0;             // of the last StartTraining
  std::optional<Round> encoding_;  // of the last StartEncoding, until it has ended
  bool last_work_evaluation_ = false;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_TESTS_SUPPORT_MACHINE_SCRIPT_H_

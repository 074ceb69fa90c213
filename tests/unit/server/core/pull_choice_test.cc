#include "server/core/pull_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace autoloco::server {
namespace {

using Kind = PullChoice::Kind;

std::string Digest(Version version) { return absl::StrCat("view ", version); }

// A server at version 9 that keeps the broadcasts of versions 6 to 9 and knows the digests of all versions since 1.
class PullChoiceTest : public ::testing::Test {
 protected:
  PullChoiceTest() {
    for (Round round = 0; round < 9; ++round) {
      RoundRecord& record = history_.emplace_back();
      record.round = round;
      record.view_digest = Digest(round + 1);
    }
    situation_.current = 9;
    situation_.current_digest = Digest(9);
    situation_.history = history_;
    situation_.lossless = false;
    situation_.oldest_broadcast = 6;
  }

  static PullOpened Holds(Version version, const std::string& digest) {
    return {.ticket = 1, .held_version = version, .held_digest = digest};
  }
  static PullOpened Mixed(Version oldest) { return {.ticket = 1, .held_version = oldest, .held_mixed = true}; }
  static PullOpened Part(PullForm form, Version version) {
    return {.ticket = 1, .part = {.form = form, .version = version}};
  }

  void ExpectServed(const PullOpened& pull, PullForm form, Version version, bool mismatch = false) {
    const PullChoice choice = ChoosePull(pull, situation_);
    ASSERT_EQ(choice.kind, Kind::kServe) << choice.status;
    EXPECT_STREQ(PullFormName(choice.form), PullFormName(form));
    EXPECT_EQ(choice.version, version);
    EXPECT_EQ(choice.view_digest, form == PullForm::kLive ? "" : Digest(version));
    EXPECT_EQ(choice.mismatch, mismatch);
  }

  std::vector<RoundRecord> history_;
  PullSituation situation_;
};

TEST_F(PullChoiceTest, WhoHoldsTheCurrentVersionGetsNothing) {
  for (const bool committing : {false, true}) {
    situation_.committing = committing;
    ExpectServed(Holds(9, Digest(9)), PullForm::kNothing, 9);
  }
}

TEST_F(PullChoiceTest, WhoIsBehindGetsTheNextBroadcast) {
  for (const bool committing : {false, true}) {
    situation_.committing = committing;
    ExpectServed(Holds(8, Digest(8)), PullForm::kBroadcast, 9);
    ExpectServed(Holds(5, Digest(5)), PullForm::kBroadcast, 6);
    ExpectServed(Mixed(8), PullForm::kBroadcast, 9);
    ExpectServed(Mixed(5), PullForm::kBroadcast, 6);
  }
}

TEST_F(PullChoiceTest, AllElseGetsTheLiveView) {
  ExpectServed(Holds(0, ""), PullForm::kLive, 9);         // nothing
  ExpectServed(Holds(9, ""), PullForm::kLive, 9);         // the same
  ExpectServed(Holds(4, Digest(4)), PullForm::kLive, 9);  // too far behind
  ExpectServed(Mixed(4), PullForm::kLive, 9);
  ExpectServed(Mixed(9), PullForm::kLive, 9);        // of a version that is not being made
  ExpectServed(Holds(10, "x"), PullForm::kLive, 9);  // ahead
  ExpectServed(Holds(11, "x"), PullForm::kLive, 9);
  ExpectServed(Holds(0, "of the start"), PullForm::kLive, 9);  // a digest that is not known
}

TEST_F(PullChoiceTest, WhatIsKnownToDifferIsAMismatch) {
  ExpectServed(Holds(9, "other"), PullForm::kLive, 9, true);
  ExpectServed(Holds(8, "other"), PullForm::kLive, 9, true);
  ExpectServed(Holds(1, "other"), PullForm::kLive, 9, true);
  situation_.lossless = true;
  ExpectServed(Holds(8, "other"), PullForm::kFull, 9, true);
}

TEST_F(PullChoiceTest, WhoHasReadOfTheVersionThatIsBeingMadeWaitsForIt) {
  situation_.committing = true;
  EXPECT_EQ(ChoosePull(Mixed(9), situation_).kind, Kind::kPark);
  EXPECT_EQ(ChoosePull(Holds(10, "x"), situation_).kind, Kind::kPark);
  ExpectServed(Holds(11, "x"), PullForm::kLive, 9);  // of no version that could be
  ExpectServed(Holds(10, ""), PullForm::kLive, 9);
}

TEST_F(PullChoiceTest, WholeVersionsAreSentWhereBroadcastsAreLossless) {
  situation_.lossless = true;
  for (const bool committing : {false, true}) {
    situation_.committing = committing;
    ExpectServed(Holds(9, Digest(9)), PullForm::kNothing, 9);
    ExpectServed(Holds(8, Digest(8)), PullForm::kFull, 9);
    ExpectServed(Holds(0, ""), PullForm::kFull, 9);
    ExpectServed(Mixed(9), PullForm::kFull, 9);
    ExpectServed(Holds(10, "x"), PullForm::kFull, 9);
  }
}

TEST_F(PullChoiceTest, APartIsExactlyWhatItSays) {
  ExpectServed(Part(PullForm::kBroadcast, 6), PullForm::kBroadcast, 6);
  ExpectServed(Part(PullForm::kBroadcast, 9), PullForm::kBroadcast, 9);
  ExpectServed(Part(PullForm::kLive, 7), PullForm::kLive, 9);
  for (const PullOpened& gone :
       {Part(PullForm::kBroadcast, 5), Part(PullForm::kBroadcast, 10), Part(PullForm::kFull, 9)}) {
    const PullChoice choice = ChoosePull(gone, situation_);
    EXPECT_EQ(choice.kind, Kind::kRefuse);
    EXPECT_EQ(choice.status.code(), absl::StatusCode::kAborted);
  }
  situation_.lossless = true;
  ExpectServed(Part(PullForm::kFull, 9), PullForm::kFull, 9);
  for (const PullOpened& gone : {Part(PullForm::kFull, 8), Part(PullForm::kBroadcast, 9), Part(PullForm::kLive, 9)}) {
    EXPECT_EQ(ChoosePull(gone, situation_).status.code(), absl::StatusCode::kAborted);
  }
}

TEST_F(PullChoiceTest, DigestsAreKnownAsFarAsTheHistoryGoes) {
  EXPECT_EQ(ViewDigestOf(9, situation_), Digest(9));
  EXPECT_EQ(ViewDigestOf(1, situation_), Digest(1));
  EXPECT_EQ(ViewDigestOf(0, situation_), "");
  situation_.initial_digest = "view 0";
  EXPECT_EQ(ViewDigestOf(0, situation_), "view 0");
  EXPECT_EQ(ViewDigestOf(10, situation_), "");
  history_.erase(history_.begin(), history_.begin() + 6);  // of a run that knows its last three rounds alone
  situation_.history = history_;
  EXPECT_EQ(ViewDigestOf(7, situation_), Digest(7));
  EXPECT_EQ(ViewDigestOf(6, situation_), "");
  history_[1].round = 77;
  EXPECT_EQ(ViewDigestOf(8, situation_), "") << "a history with a gap";
}

}  // namespace
}  // namespace autoloco::server

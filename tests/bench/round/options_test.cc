#include "tests/bench/round/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/round/model_shape.h"

namespace autoloco::bench {
namespace {

using ::testing::ElementsAre;

TEST(RoundOptions, EveryCaseByDefaultAndManyWorkersWithSmallModelsOnly) {
  EXPECT_THAT(
      ParseRoundOptions({})->cases,
      ElementsAre(RoundCase{1'000'000, 2}, RoundCase{1'000'000, 8}, RoundCase{1'000'000, 32}, RoundCase{10'000'000, 2},
                  RoundCase{10'000'000, 8}, RoundCase{10'000'000, 32}, RoundCase{67'000'000, 2},
                  RoundCase{67'000'000, 8}, RoundCase{100'000'000, 2}, RoundCase{100'000'000, 8}));
}

TEST(RoundOptions, ListsMakeTheirProduct) {
  EXPECT_THAT(
      ParseRoundOptions({"--params", "1000000,2000000", "--workers=3,4"})->cases,
      ElementsAre(RoundCase{1'000'000, 3}, RoundCase{1'000'000, 4}, RoundCase{2'000'000, 3}, RoundCase{2'000'000, 4}));
}

TEST(RoundOptions, WhatIsNotItsOwnGoesToTheServer) {
  const RoundOptions options =
      ParseRoundOptions({"--codec.delta", "quantized", "--rounds=3", "--codec.step=1", "--json", "x"}).value();
  EXPECT_THAT(options.server_flags, ElementsAre("--codec.delta", "quantized", "--codec.step=1"));
  EXPECT_EQ(options.rounds, 3u);
  EXPECT_EQ(options.json, "x");
}

TEST(RoundOptions, RefusesWhatItCannotUse) {
  for (const char* argument : {"--params=1000", "--params=x", "--workers=0", "--workers=2,,3", "--rounds=1",
                               "--pairs=0", "--json=", "--baseline"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseRoundOptions({argument}).status())) << argument;
  }
}

TEST(ModelShape, HasAboutSoManyParameters) {
  for (const std::uint64_t params : {kParamsMin, std::uint64_t{1'000'000}, kParamsMax}) {
    const std::uint64_t got = MakeDecoderLayout(ShapeOfSize(params))->value_count();
    EXPECT_LT(got > params ? got - params : params - got, 100u);
  }
}

}  // namespace
}  // namespace autoloco::bench

#include "tests/support/gate.h"

#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace autoloco::test {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

class GateTest : public testing::Test {
 protected:
  std::unique_ptr<Gate> Visitor() { return Gate::Connect(path_).value(); }

  const TempFolder folder_;
  const std::string path_ = folder_.File("gate");
  std::unique_ptr<GateKeeper> keeper_ = GateKeeper::Listen(path_).value();
};

TEST_F(GateTest, NobodyPassesBeforeEverybodyIsThere) {
  const std::unique_ptr<Gate> first = Visitor();
  const std::unique_ptr<Gate> second = Visitor();
  ASSERT_TRUE(keeper_->Admit(2, kPatience).ok());
  std::future<absl::Status> first_pass = std::async(std::launch::async, [&] { return first->Pass(); });
  EXPECT_TRUE(absl::IsDeadlineExceeded(keeper_->Gather(absl::Milliseconds(1)).status()));
  keeper_.reset();
  EXPECT_TRUE(absl::IsUnavailable(first_pass.get()));
}

TEST_F(GateTest, SpansRunFromTheOpeningToTheNextVisit) {
  const std::unique_ptr<Gate> first = Visitor();
  const std::unique_ptr<Gate> second = Visitor();
  ASSERT_TRUE(keeper_->Admit(2, kPatience).ok());
  const auto twice = [](Gate* gate) { return gate->Pass().ok() && gate->Pass().ok(); };
  std::future<bool> first_passes = std::async(std::launch::async, twice, first.get());
  std::future<bool> second_passes = std::async(std::launch::async, twice, second.get());
  ASSERT_TRUE(keeper_->Gather(kPatience).ok());
  const Instant opened = MonotonicClock()->Now();
  ASSERT_TRUE(keeper_->Open().ok());
  const std::vector<GateSpan> spans = keeper_->Gather(kPatience).value();
  const Instant gathered = MonotonicClock()->Now();
  ASSERT_EQ(spans.size(), 2u);
  for (const GateSpan& span : spans) {
    EXPECT_LE(opened, span.since);
    EXPECT_LE(span.since, span.until);
    EXPECT_LE(span.until, gathered);
  }
  ASSERT_TRUE(keeper_->Open().ok());
  EXPECT_TRUE(first_passes.get());
  EXPECT_TRUE(second_passes.get());
}

TEST_F(GateTest, AVisitorThatIsGoneIsNoticed) {
  const std::unique_ptr<Gate> first = Visitor();
  std::unique_ptr<Gate> second = Visitor();
  ASSERT_TRUE(keeper_->Admit(2, kPatience).ok());
  second.reset();
  EXPECT_TRUE(absl::IsUnavailable(keeper_->Gather(kPatience).status()));
}

TEST_F(GateTest, AKeeperThatIsGoneIsNoticed) {
  const std::unique_ptr<Gate> visitor = Visitor();
  ASSERT_TRUE(keeper_->Admit(1, kPatience).ok());
  keeper_.reset();
  EXPECT_TRUE(absl::IsUnavailable(visitor->Pass()));
  EXPECT_TRUE(absl::IsUnavailable(Gate::Connect(path_).status()));
}

TEST_F(GateTest, APathThatIsTooLongIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(GateKeeper::Listen(std::string(200, 'x')).status()));
}

}  // namespace
}  // namespace autoloco::test

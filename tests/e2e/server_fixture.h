// A real server process with two hand-made workers, `a` and `b`, that hold an assignment of round 0.
#ifndef AUTOLOCO_TESTS_E2E_SERVER_FIXTURE_H_
#define AUTOLOCO_TESTS_E2E_SERVER_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/tensor/layout.h"
#include "tests/support/process.h"
#include "tests/support/protocol_client.h"
#include "tests/support/temp_folder.h"

namespace autoloco::test {

// The layout of the server's model: the preset nano, two blocks of values.
Layout NanoLayout();

class ServerFixture : public ::testing::Test {
 protected:
  // `model`: the flags that set the server's model.
  explicit ServerFixture(std::vector<std::string> model = {"--model.preset", "nano"});

  // Starts the server with `flags` added to those of the fixture.
  void StartServer(const std::vector<std::string>& flags = {});
  // Joins both workers and waits for their assignments.
  void JoinBoth();

  std::vector<float> SomeDelta(float scale) const;

  // The run is as if nothing had been tried: version 0 with its digest, and when `a` pushes its delta and `b` leaves,
  // the next version is what the delta of `a` alone makes of it.
  void ExpectUnharmed();

  const std::vector<std::string> model_;
  const Layout layout_;
  TempFolder folder_;
  ServerProcess server_;
  std::unique_ptr<RawWorker> a_;
  std::unique_ptr<RawWorker> b_;
  v1::Assignment assignment_a_;
  v1::Assignment assignment_b_;
};

}  // namespace autoloco::test

#endif  // AUTOLOCO_TESTS_E2E_SERVER_FIXTURE_H_

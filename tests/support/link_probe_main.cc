// autoloco-link-probe: asks a server for its status again and again over one connection of its own, and prints how long
// each answer took, in seconds, one a line. Run where the link is to be felt (a network namespace), until it is killed.
//
//   autoloco-link-probe HOST:PORT
#include <cstdio>

#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "server/ctl/admin_client.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto client = autoloco::server::AdminClient::Open(argv[1], /*insecure=*/true);
  if (!client.ok()) return 2;
  while (true) {
    const autoloco::Instant begin = autoloco::MonotonicClock()->Now();
    if (client->GetStatus(absl::Seconds(30)).ok()) {
      std::printf("%.4f\n", absl::ToDoubleSeconds(autoloco::MonotonicClock()->Now() - begin));
      std::fflush(stdout);
    }
    absl::SleepFor(absl::Milliseconds(50));  // as often as a heartbeat, or more
  }
}

#include "server/ctl/evict_command.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "server/ctl/admin_client.h"
#include "server/ctl/flag_reader.h"

namespace autoloco::server {
namespace {

constexpr char kUsage[] =
    "Usage: autoloco evict NAME [--readmit] [--server HOST:PORT] [--timeout SECONDS] [--insecure]\n\n"
    "Ends the life of a worker: its session is closed, its process ends, the open round no longer waits for it. What "
    "it\n"
    "has delivered still counts. Its name is kept out until it is readmitted, also after a restart of the server.\n\n"
    "  --readmit           lets the name join again\n"
    "  --server HOST:PORT  the server's gRPC address (default 127.0.0.1:7070)\n"
    "  --timeout SECONDS   gives up after this long (default 10)\n"
    "  --insecure          speaks without TLS to a server that is not on loopback\n";

int Misused(absl::string_view why, std::ostream& err) {
  err << "autoloco evict: " << why << "; see `autoloco evict --help`\n";
  return kExitUsage;
}

int Evict(std::span<const std::string> arguments, std::ostream& out, std::ostream& err) {
  if (arguments.empty() || absl::StartsWith(arguments.front(), "-"))
    return Misused("the worker's name comes first", err);
  const std::string& worker = arguments.front();
  std::string server = "127.0.0.1:7070";
  double timeout_seconds = 10;
  bool readmit = false;
  bool insecure = false;
  FlagReader flags;
  flags.Text("server", &server);
  flags.Seconds("timeout", &timeout_seconds);
  flags.Switch("readmit", &readmit);
  flags.Switch("insecure", &insecure);
  const absl::Status parsed = flags.Parse(arguments.subspan(1));
  if (!parsed.ok()) return Misused(parsed.message(), err);
  const absl::StatusOr<AdminClient> client = AdminClient::Open(server, insecure);
  if (!client.ok()) return Misused(client.status().message(), err);
  const absl::Status done = client->Evict(worker, readmit, absl::Seconds(timeout_seconds));
  if (!done.ok()) {
    err << "autoloco evict: " << done.message() << "\n";
    return kExitFailed;
  }
  out << worker << (readmit ? " may join again\n" : " is evicted\n");
  return kExitOk;
}

}  // namespace

const Command kEvictCommand = {"evict", "ends a worker's life and keeps its name out", kUsage, Evict};

}  // namespace autoloco::server

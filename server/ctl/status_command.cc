#include "server/ctl/status_command.h"

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/ctl/admin_client.h"
#include "server/ctl/flag_reader.h"
#include "server/ctl/status_text.h"

namespace autoloco::server {
namespace {

constexpr char kUsage[] =
    "Usage: autoloco status [--server HOST:PORT] [--json] [--timeout SECONDS] [--insecure]\n\n"
    "Shows what a running server is doing: phase, round, loss, bytes, workers.\n\n"
    "  --server HOST:PORT  the server's gRPC address (default 127.0.0.1:7070)\n"
    "  --json              one JSON object instead of a table; names as in admin.proto, 64-bit numbers as text\n"
    "  --timeout SECONDS   gives up after this long (default 10)\n"
    "  --insecure          speaks without TLS to a server that is not on loopback\n";

int Misused(const absl::Status& why, std::ostream& err) {
  err << "autoloco status: " << why.message() << "; see `autoloco status --help`\n";
  return kExitUsage;
}

int ShowStatus(std::span<const std::string> arguments, std::ostream& out, std::ostream& err) {
  std::string server = "127.0.0.1:7070";
  double timeout_seconds = 10;
  bool json = false;
  bool insecure = false;
  FlagReader flags;
  flags.Text("server", &server);
  flags.Seconds("timeout", &timeout_seconds);
  flags.Switch("json", &json);
  flags.Switch("insecure", &insecure);
  if (const absl::Status parsed = flags.Parse(arguments); !parsed.ok()) return Misused(parsed, err);
  const absl::StatusOr<AdminClient> client = AdminClient::Open(server, insecure);
  if (!client.ok()) return Misused(client.status(), err);
  const absl::StatusOr<v1::Status> status = client->GetStatus(absl::Seconds(timeout_seconds));
  if (!status.ok()) {
    err << "autoloco status: " << status.status().message() << "\n";
    return kExitFailed;
  }
  if (!json) {
    out << StatusTable(*status);
    return kExitOk;
  }
  const absl::StatusOr<std::string> text = StatusJson(*status);
  if (!text.ok()) {
    err << "autoloco status: " << text.status().message() << "\n";
    return kExitFailed;
  }
  out << *text << "\n";
  return kExitOk;
}

}  // namespace

const Command kStatusCommand = {"status", "what the run is doing: round, loss, bytes, workers", kUsage, ShowStatus};

}  // namespace autoloco::server

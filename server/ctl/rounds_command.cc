#include "server/ctl/rounds_command.h"

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/ctl/admin_client.h"
#include "server/ctl/flag_reader.h"
#include "server/ctl/rounds_text.h"

namespace autoloco::server {
namespace {

constexpr char kUsage[] =
    "Usage: autoloco rounds [--server HOST:PORT] [--csv | --json] [--timeout SECONDS] [--insecure]\n\n"
    "Shows every committed round: the length of its interval and why, how the outer step was corrected, the workers'\n"
    "agreement, losses and norms.\n\n"
    "  --server HOST:PORT  the server's gRPC address (default 127.0.0.1:7070)\n"
    "  --csv               every number of every round, a line a round; names as in admin.proto\n"
    "  --json              the same as one JSON object; 64-bit numbers as text\n"
    "  --timeout SECONDS   gives up after this long (default 10)\n"
    "  --insecure          speaks without TLS to a server that is not on loopback\n";

int Misused(absl::string_view why, std::ostream& err) {
  err << "autoloco rounds: " << why << "; see `autoloco rounds --help`\n";
  return kExitUsage;
}

int Failed(const absl::Status& why, std::ostream& err) {
  err << "autoloco rounds: " << why.message() << "\n";
  return kExitFailed;
}

int ShowRounds(std::span<const std::string> arguments, std::ostream& out, std::ostream& err) {
  std::string server = "127.0.0.1:7070";
  double timeout_seconds = 10;
  bool csv = false;
  bool json = false;
  bool insecure = false;
  FlagReader flags;
  flags.Text("server", &server);
  flags.Seconds("timeout", &timeout_seconds);
  flags.Switch("csv", &csv);
  flags.Switch("json", &json);
  flags.Switch("insecure", &insecure);
  if (const absl::Status parsed = flags.Parse(arguments); !parsed.ok()) return Misused(parsed.message(), err);
  if (csv && json) return Misused("--csv and --json exclude each other", err);
  const absl::StatusOr<AdminClient> client = AdminClient::Open(server, insecure);
  if (!client.ok()) return Misused(client.status().message(), err);
  const absl::StatusOr<v1::Rounds> rounds = client->GetRounds(absl::Seconds(timeout_seconds));
  if (!rounds.ok()) return Failed(rounds.status(), err);
  if (json) {
    const absl::StatusOr<std::string> text = RoundsJson(*rounds);
    if (!text.ok()) return Failed(text.status(), err);
    out << *text << "\n";
  } else {
    out << (csv ? RoundsCsv(*rounds) : RoundsTable(*rounds));
  }
  return kExitOk;
}

}  // namespace

const Command kRoundsCommand = {"rounds", "every round: interval and why, correction, agreement, loss", kUsage,
                                ShowRounds};

}  // namespace autoloco::server

// GET /metrics over HTTP: prometheus-cpp's server, with its exceptions turned into errors that name the port.
#ifndef AUTOLOCO_SERVER_TELEMETRY_METRICS_ENDPOINT_H_
#define AUTOLOCO_SERVER_TELEMETRY_METRICS_ENDPOINT_H_

#include <sys/socket.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "prometheus/collectable.h"
#include "prometheus/exposer.h"

namespace autoloco::server {

// Where an endpoint listens.
struct MetricsAddress {
  struct sockaddr_storage socket = {};
  socklen_t size = 0;
  std::string text;  // as the HTTP server wants it: numeric, "127.0.0.1:80" or "[::1]:80"
};

// Serves with threads of its own until destroyed.
class MetricsEndpoint {
 public:
  // Listens on `address`: host:port, an empty host for all interfaces, port 0 for any free one. INVALID_ARGUMENT: no
  // such address; FAILED_PRECONDITION naming the address: the port is taken, or the address is not this machine's.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Open(const std::string& address,
                                                               std::shared_ptr<prometheus::Collectable> source);

  // Waits for scrapes under way.
  ~MetricsEndpoint();

  // The port that is listened on.
  int port() const { return port_; }

 private:
  MetricsEndpoint(std::shared_ptr<prometheus::Collectable> source, std::unique_ptr<prometheus::Exposer> exposer,
                  const MetricsAddress& address, int port);

  void Stop();
  void Knock() const;

  const std::shared_ptr<prometheus::Collectable> source_;  // the exposer holds it weakly
  std::unique_ptr<prometheus::Exposer> exposer_;
  const MetricsAddress address_;
  const int port_;

  Mutex mutex_;
  CondVar stopped_changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_TELEMETRY_METRICS_ENDPOINT_H_

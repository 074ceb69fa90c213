#include "server/telemetry/metrics_endpoint.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace autoloco::server {
namespace {

constexpr int kScrapeThreads = 2;

absl::StatusOr<MetricsAddress> Resolve(absl::string_view text) {
  const std::size_t colon = text.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("metrics address '", text, "': want host:port"));
  }
  std::string host(text.substr(0, colon));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  struct addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_family = host.empty() ? AF_INET : AF_UNSPEC;
  struct addrinfo* found = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::InvalidArgumentError(absl::StrCat("metrics address '", text, "': ", gai_strerror(error)));
  }
  const std::unique_ptr<struct addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  for (const struct addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family == AF_INET) found = const_cast<struct addrinfo*>(entry);  // before IPv6
  }
  MetricsAddress address;
  address.size = found->ai_addrlen;
  std::memcpy(&address.socket, found->ai_addr, found->ai_addrlen);
  char numeric[NI_MAXHOST] = {};
  if (getnameinfo(found->ai_addr, found->ai_addrlen, numeric, sizeof(numeric), nullptr, 0, NI_NUMERICHOST) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("metrics address '", text, "' cannot be written as a number"));
  }
  address.text =
      found->ai_family == AF_INET6 ? absl::StrCat("[", numeric, "]:", port) : absl::StrCat(numeric, ":", port);
  return address;
}

// The HTTP server does not say why it could not listen: the system does, when asked the same. Empty: it can now.
std::string WhyNotListening(const MetricsAddress& address) {
  const int descriptor = socket(address.socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return std::strerror(errno);
  const int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  std::string why;
  const auto* const bound = reinterpret_cast<const struct sockaddr*>(&address.socket);
  if (bind(descriptor, bound, address.size) != 0 || listen(descriptor, 1) != 0) why = std::strerror(errno);
  close(descriptor);
  return why;
}

}  // namespace

MetricsEndpoint::MetricsEndpoint(std::shared_ptr<prometheus::Collectable> source,
                                 std::unique_ptr<prometheus::Exposer> exposer, const MetricsAddress& address, int port)
    : source_(std::move(source)), exposer_(std::move(exposer)), address_(address), port_(port) {}

// The HTTP server's accepting thread looks whether it should stop every two seconds, and after each connection: so
// connections are made until it has stopped, or every server would end two seconds late.
MetricsEndpoint::~MetricsEndpoint() {
  std::thread stopper(&MetricsEndpoint::Stop, this);
  {
    const MutexLock lock(&mutex_);
    while (!stopped_) {
      Knock();
      stopped_changed_.WaitFor(&mutex_, absl::Milliseconds(10));
    }
  }
  stopper.join();
}

void MetricsEndpoint::Stop() {
  exposer_.reset();
  const MutexLock lock(&mutex_);
  stopped_ = true;
  stopped_changed_.NotifyAll();
}

void MetricsEndpoint::Knock() const {
  struct sockaddr_storage target = address_.socket;
  if (target.ss_family == AF_INET6) {
    reinterpret_cast<struct sockaddr_in6*>(&target)->sin6_port = htons(static_cast<std::uint16_t>(port_));
  } else {
    reinterpret_cast<struct sockaddr_in*>(&target)->sin_port = htons(static_cast<std::uint16_t>(port_));
  }
  const int descriptor = socket(target.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return;
  // Whether it succeeds does not matter: the server may be gone by now.
  static_cast<void>(connect(descriptor, reinterpret_cast<const struct sockaddr*>(&target), address_.size));
  close(descriptor);
}

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Open(
    const std::string& address, std::shared_ptr<prometheus::Collectable> source) {
  const absl::StatusOr<MetricsAddress> resolved = Resolve(address);
  if (!resolved.ok()) return resolved.status();
  try {
    auto exposer = std::make_unique<prometheus::Exposer>(resolved->text, kScrapeThreads);
    exposer->RegisterCollectable(source);
    const std::vector<int> ports = exposer->GetListeningPorts();
    if (ports.empty()) return absl::InternalError(absl::StrCat("metrics address ", address, ": not listening"));
    return std::unique_ptr<MetricsEndpoint>(
        new MetricsEndpoint(std::move(source), std::move(exposer), *resolved, ports.front()));
  } catch (const std::exception& error) {
    const std::string why = WhyNotListening(*resolved);
    return absl::FailedPreconditionError(
        absl::StrCat("cannot serve metrics on ", address, ": ", why.empty() ? error.what() : why));
  }
}

}  // namespace autoloco::server

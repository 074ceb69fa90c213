// One HTTP GET to a server of this machine, for tests that scrape.
#ifndef AUTOLOCO_TESTS_SUPPORT_HTTP_GET_H_
#define AUTOLOCO_TESTS_SUPPORT_HTTP_GET_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace autoloco {

// The whole answer, header and body, of http://127.0.0.1:`port``path`; empty when nobody answers. Blocks until the
// server closes the connection.
inline std::string HttpGet(int port, const std::string& path) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return "";
  struct sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string request = "GET " + path + " HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
  std::string answer;
  if (connect(descriptor, reinterpret_cast<const struct sockaddr*>(&address), sizeof(address)) == 0 &&
      send(descriptor, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
    char buffer[1 << 14];
    ssize_t got = 0;
    while ((got = recv(descriptor, buffer, sizeof(buffer), 0)) > 0) {
      answer.append(buffer, static_cast<std::size_t>(got));
    }
  }
  close(descriptor);
  return answer;
}

}  // namespace autoloco

#endif  // AUTOLOCO_TESTS_SUPPORT_HTTP_GET_H_

#include "comm/watch.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>

#include <fmt/core.h>

namespace tinygrad::comm {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto patience = std::chrono::seconds(5);
constexpr int32_t nobody = -1;

/// What a rank says first.
struct Greeting {
  uint64_t key = 0;
  uint32_t rank = 0, unused = 0;
};

int milliseconds_until(Clock::time_point end) {
  return int(std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count()));
}

bool wait_for(int socket, short events, Clock::time_point end) {
  pollfd p{socket, events, 0};
  int found = 0;
  do found = ::poll(&p, 1, milliseconds_until(end));
  while (found < 0 && errno == EINTR);
  return found == 1;
}

bool receive(int socket, std::span<std::byte> bytes, Clock::time_point end) {
  while (!bytes.empty()) {
    if (!wait_for(socket, POLLIN, end)) return false;
    const ssize_t n = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (n <= 0) return false;
    bytes = bytes.subspan(size_t(n));
  }
  return true;
}

/// A connection, or -1.
int connected(const std::string& host, uint16_t port, Clock::time_point end) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(host.c_str(), fmt::format("{}", port).c_str(), &hints, &found) != 0) return -1;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  for (const addrinfo* a = found; a; a = a->ai_next) {
    const int socket = ::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket < 0) continue;
    int error = 0;
    socklen_t size = sizeof error;
    if (::connect(socket, a->ai_addr, a->ai_addrlen) == 0 || (errno == EINPROGRESS && wait_for(socket, POLLOUT, end) &&
                                                              ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0))
      return socket;
    ::close(socket);
  }
  return -1;
}

}  // namespace

Watch::~Watch() {
  if (listener_ >= 0) ::close(listener_);
  for (const Peer& p : peers_)
    if (p.socket >= 0) ::close(p.socket);
}

uint16_t Watch::listen(int ranks) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener_ < 0) return 0;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(listener_, ranks) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return 0;
  return ntohs(address.sin_port);
}

void Watch::connect(int rank, std::span<const std::string> hosts, std::span<const uint16_t> ports, uint64_t key) {
  const auto end = Clock::now() + patience;
  peers_.resize(hosts.size());
  for (int r = 0; r < rank; ++r) {
    if (ports[size_t(r)] == 0) continue;
    const bool is_here = hosts[size_t(r)] == hosts[size_t(rank)];
    const int socket = connected(is_here ? "127.0.0.1" : hosts[size_t(r)], ports[size_t(r)], end);
    const Greeting mine{key, uint32_t(rank)};
    if (socket >= 0 && ::send(socket, &mine, sizeof mine, MSG_NOSIGNAL) == ssize_t(sizeof mine))
      peers_[size_t(r)].socket = socket;
    else if (socket >= 0)
      ::close(socket);
  }
  for (size_t missing = hosts.size() - size_t(rank) - 1; ports[size_t(rank)] != 0 && missing > 0 && wait_for(listener_, POLLIN, end);) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) continue;
    Greeting theirs;
    const bool is_one = receive(socket, std::as_writable_bytes(std::span(&theirs, 1)), end) && theirs.key == key &&
                        theirs.rank > uint32_t(rank) && theirs.rank < hosts.size() && peers_[theirs.rank].socket < 0;
    if (!is_one) {
      ::close(socket);
      continue;
    }
    peers_[theirs.rank].socket = socket;
    --missing;
  }
  if (listener_ >= 0) ::close(listener_);
  listener_ = -1;
}

void Watch::look() {
  for (Peer& p : peers_) {
    if (p.socket < 0 || p.state != State::there) continue;
    int32_t said = 0;
    const ssize_t n = ::recv(p.socket, &said, sizeof said, MSG_DONTWAIT);
    if (n == ssize_t(sizeof said)) {
      p.state = State::left;
      if (said >= 0 && size_t(said) < peers_.size()) p.given_up = said;
    } else if (n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      p.state = State::lost;
    }
  }
}

Watch::State Watch::state_of(int rank) {
  look();
  return peers_.empty() ? State::there : peers_[size_t(rank)].state;
}

std::optional<int> Watch::lost() {
  look();
  for (size_t r = 0; r < peers_.size(); ++r)
    if (peers_[r].state == State::lost) return int(r);
  return {};
}

std::optional<int> Watch::given_up_by(int rank) const { return peers_.empty() ? std::nullopt : peers_[size_t(rank)].given_up; }

void Watch::leave(std::optional<int> given_up) {
  const int32_t said = given_up.value_or(nobody);
  for (const Peer& p : peers_)
    if (p.socket >= 0) (void)!::send(p.socket, &said, sizeof said, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool Watch::wait_for_all() {
  constexpr auto pause = std::chrono::milliseconds(2);
  for (;; std::this_thread::sleep_for(pause)) {
    if (lost() || std::ranges::any_of(peers_, [](const Peer& p) { return p.given_up.has_value(); })) return false;
    if (std::ranges::all_of(peers_, [](const Peer& p) { return p.socket < 0 || p.state == State::left; })) return true;
  }
}

}  // namespace tinygrad::comm
